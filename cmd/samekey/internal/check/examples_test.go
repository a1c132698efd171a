package check_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/cmd/samekey/internal/check"
	"github.com/samekey/samekey/examples/hello/greeting"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/servers/apigateway"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// behind serves a function behind an HTTP API in this process.
func behind(t *testing.T, route string, function lambdarun.Invoker, auth apigateway.Authorizer) http.Handler {
	t.Helper()
	fn := lambdarun.InProcess(function, 5*time.Minute)
	t.Cleanup(func() { _ = fn.Close() })
	return apigateway.HTTPAPIRoutes(map[string]apigateway.HTTPRoute{route: {Function: fn, Authorizer: auth}},
		func(o *apigateway.HTTPAPIOptions) { o.IntegrationTimeout = 5 * time.Minute })
}

func quiet(o *idem.Options) {
	o.Logger, o.Hooks = slog.New(slog.DiscardHandler), idem.Hooks{}
}

// clean checks that a report has no fault, and that only the named checks were left out.
func clean(t *testing.T, report *check.Report, leftOut map[string]bool) {
	t.Helper()
	if report.Faults != 0 {
		t.Errorf("%v: %+v", report.Broken(check.Default), report.Checks)
	}
	for _, o := range report.Checks {
		if (o.Why != "") != leftOut[o.Check] {
			t.Errorf("%s: %q", o.Check, o.Why)
		}
	}
}

func TestHello(t *testing.T) {
	t.Parallel()
	hello := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.ByToken, quiet), lambda.HTTPAPI, greeting.Greeter{Log: io.Discard}.Hello)
	report := examine(t, behind(t, "POST /hello", hello, nil), func(url string) check.Template {
		return check.Template{
			URL: url + "/hello", Body: []byte(`{"name":"Ada","linger_ms":100}`), OtherBody: []byte(`{"name":"Bob"}`), RefusedBody: []byte(`{}`),
			Header: http.Header{"Authorization": {"Bearer ada"}}, OtherCaller: http.Header{"Authorization": {"Bearer bob"}},
		}
	})
	// The example has no other route, and its gateway has no CORS.
	clean(t, report, map[string]bool{"path": true, "method": true, "cors": true})
}

func TestRocketRides(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer((&world.World{}).Handler())
	t.Cleanup(srv.Close)
	app := &rides.App{RidesTable: "rides", AuditTable: "audit", Payments: rides.Payments{URL: srv.URL}}
	engine := rides.Engine(&idem.MemoryStore{}, rides.RidesNamespace, quiet, func(o *idem.Options) { o.Function, o.Resumable = "f", true })
	// A handler of aws-lambda-go takes one invocation at a time, so each
	// invocation gets its own handler.
	auth := lambdarun.InProcess(lambdarun.InvokerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		return awslambda.NewHandler(rides.Authorize).Invoke(ctx, payload)
	}), 5*time.Minute)
	t.Cleanup(func() { _ = auth.Close() })
	front := behind(t, "POST /rides", rides.NewFunction(app, engine), &apigateway.LambdaAuthorizer{
		Function: auth, IdentitySources: []string{"header.Authorization"}, Simple: true,
	})
	const trip = `{"origin_lat":37.7,"origin_lon":-122.4,"target_lat":37.8,"target_lon":-122.3}`
	report := examine(t, front, func(url string) check.Template {
		return check.Template{
			URL: url + "/rides", Body: []byte(trip), RefusedBody: []byte(`{}`),
			OtherBody:   []byte(`{"origin_lat":37.6,"origin_lon":-122.4,"target_lat":37.8,"target_lon":-122.3}`),
			Header:      http.Header{"Authorization": {"Bearer jane@example.com"}},
			OtherCaller: http.Header{"Authorization": {"Bearer omar@example.com"}},
		}
	})
	clean(t, report, map[string]bool{"path": true, "method": true, "cors": true})
}
