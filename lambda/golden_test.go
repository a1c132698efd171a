package lambda_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// What the files in testdata have in common.
const (
	goldenKey  = "8e03978e-40d5-43e8-bc93-6894a57f9324"
	goldenBody = `{"origin_lat":37.77,"origin_lon":-122.39}`
	goldenPNG  = "\x89PNG\r\n\x1a\n\x00\xff"

	goldenUser  = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI|9a3b1c2d-7e4f-4a5b-8c6d-0e1f2a3b4c5d"
	goldenRole  = "arn:aws:sts::123456789012:assumed-role/checkout/checkout-prod"
	goldenRider = "eu-central-1:4f291106-8703-466b-8f2b-3ecee1ca56ce|eu-central-1:3f291106-8703-466b-8f2b-3ecee1ca56ce"
)

// plain is the request of most files.
func plain(edit func(*idem.Request)) idem.Request {
	r := idem.Request{
		Method: "POST", Path: "/rides", Route: "POST /rides", Body: []byte(goldenBody),
		Header: http.Header{"Idempotency-Key": {goldenKey}, "Content-Type": {"application/json"}},
	}
	if edit != nil {
		edit(&r)
	}
	return r
}

// session is a role's session: a fact, and no caller.
func session(r *idem.Request) {
	r.Identity.Kind, r.Facts.Session = "iam", goldenRole
}

func identity(kind, subject string) func(*idem.Request) {
	return func(r *idem.Request) { r.Identity = idem.Identity{Kind: kind, Subject: subject} }
}

func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	const path, route = "/riders/zo%C3%AB@example.com/rides", "POST /riders/{rider}/rides"
	want := map[string]idem.Request{
		"httpapi_none": plain(nil),
		"httpapi_jwt": plain(func(r *idem.Request) {
			r.Path, r.Route, r.Query = path, route, "tag=a&dry_run=false&tag=b%20c"
			r.Header["Authorization"] = []string{"Bearer eyJraWQiOiJ..."}
			r.Header["X-Tag"] = []string{"one,two"}
			r.Header["Cookie"] = []string{"session=7f3a; theme=dark"}
			r.Identity = idem.Identity{Kind: "jwt", Subject: goldenUser}
		}),
		"httpapi_iam":            plain(session),
		"httpapi_iam_cognito":    plain(identity("iam", goldenRider)),
		"httpapi_lambda_simple":  plain(identity("lambda", "a1b2c3d4e5|rider-42")),
		"httpapi_lambda_policy":  plain(identity("lambda", "a1b2c3d4e5|rider-42")),
		"httpapi_lambda_unnamed": plain(identity("lambda", "")),
		"httpapi_binary": plain(func(r *idem.Request) {
			r.Body = []byte(goldenPNG)
			r.Header["Content-Type"] = []string{"image/png"}
		}),
		"rest_none":            plain(nil),
		"rest_httpapi_v1_none": plain(nil),
		"rest_cognito":         plain(identity("jwt", goldenUser)),
		"rest_lambda":          plain(identity("lambda", "f6g7h8i9j0|rider-42")),
		"rest_iam":             plain(session),
		"rest_iam_cognito":     plain(identity("iam", goldenRider)),
		"rest_apikey": plain(func(r *idem.Request) {
			r.Header["X-Api-Key"] = []string{"wJalrXUtnFEMI"}
			r.Facts.APIKey = "q1w2e3r4t5"
		}),
		"rest_multivalue_binary": plain(func(r *idem.Request) {
			r.Path, r.Route, r.Query = path, route, "dry_run=false&tag=a&tag=b+c"
			r.Header["Content-Type"] = []string{"image/png"}
			r.Header["X-Tag"] = []string{"one", "two"}
			r.Header["Cookie"] = []string{"session=7f3a; theme=dark"}
			r.Body = []byte(goldenPNG)
		}),
		"functionurl_none": plain(func(r *idem.Request) {
			r.Path, r.Query = path, "dry_run=false"
			r.Header["Cookie"] = []string{"session=7f3a; theme=dark"}
		}),
		"functionurl_iam": plain(session),
		"alb_single": plain(func(r *idem.Request) {
			r.Query = "dry_run=false&tag=b%20c"
			r.Header["X-Amzn-Oidc-Identity"] = []string{"9a3b1c2d-7e4f-4a5b-8c6d-0e1f2a3b4c5d"}
			r.Header["X-Amzn-Oidc-Data"] = []string{"eyJ0eXAiOiJKV1QiLCJraWQiOiI..."}
		}),
		"alb_multivalue_binary": plain(func(r *idem.Request) {
			r.Path, r.Query = path, "dry_run=false&tag=a&tag=b%20c"
			r.Header["Content-Type"] = []string{"image/png"}
			r.Header["X-Tag"] = []string{"one", "two"}
			r.Header["Cookie"] = []string{"session=7f3a; theme=dark"}
			r.Header["X-Amzn-Oidc-Identity"] = []string{"9a3b1c2d-7e4f-4a5b-8c6d-0e1f2a3b4c5d"}
			r.Header["X-Amzn-Oidc-Data"] = []string{"eyJ0eXAiOiJKV1QiLCJraWQiOiI..."}
			r.Body = []byte(goldenPNG)
		}),
	}
	for _, file := range golden(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			wantReq, ok := want[file]
			if !ok {
				t.Fatal("no expectation for this file")
			}
			wantReq.Host = domainName(t, file)
			if strings.HasPrefix(file, "functionurl") || strings.HasPrefix(file, "alb") || file == "httpapi_binary" {
				wantReq.Route = "POST /*" // these events have no pattern, and a path may name a person
			}
			got := read(t, file)
			got.Snapshot, got.Facts.Claims = nil, nil // TestSnapshots and TestOrganisationsUnderOneLogin have them
			for _, name := range noise {
				got.Header.Del(name)
			}
			if diff := cmp.Diff(wantReq, got); diff != "" {
				t.Errorf("idem.Request (-want +got):\n%s", diff)
			}
		})
	}
	if n := len(golden(t)); n != len(want) {
		t.Errorf("%d expectations for %d files", len(want), n)
	}
}

// domainName is the host that the client asked for, as the gateway says it. A load
// balancer says it in a header only.
func domainName(t *testing.T, file string) string {
	t.Helper()
	var ev struct{ RequestContext struct{ DomainName string } }
	if err := json.Unmarshal(load(t, file), &ev); err != nil {
		t.Fatal(err)
	}
	if (ev.RequestContext.DomainName == "") != strings.HasPrefix(file, "alb") {
		t.Errorf("the event's domain name is %q", ev.RequestContext.DomainName)
	}
	return ev.RequestContext.DomainName
}

// noise are headers that every golden event has and no case is about.
var noise = []string{
	"Accept", "Accept-Language", "Content-Length", "Host", "User-Agent", "X-Amzn-Trace-Id",
	"X-Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Proto",
}

// golden names the events in testdata.
func golden(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden events: %v", err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".json")
	}
	return files
}

func load(t testing.TB, file string) []byte {
	t.Helper()
	payload, err := os.ReadFile(filepath.Join("testdata", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// read invokes a wrapped handler with a golden event, through the adapter that
// its name begins with, and returns what the adapter made of it.
func read(t testing.TB, file string) (got idem.Request) {
	t.Helper()
	var h awslambda.Handler
	switch adapter, _, _ := strings.Cut(file, "_"); adapter {
	case "httpapi":
		h = spy(lambda.HTTPAPI, &got)
	case "rest":
		h = spy(lambda.REST, &got)
	case "functionurl":
		h = spy(lambda.FunctionURL, &got)
	case "alb":
		h = spy(lambda.ALB, &got)
	default:
		t.Fatalf("no adapter for %s", file)
	}
	if _, err := h.Invoke(t.Context(), load(t, file)); err != nil {
		t.Fatalf("Invoke: %v", err)
	}
	return got
}

// spy wraps a handler that does nothing, with an engine that stores requests, and keeps the
// request.
func spy[Ev, Re any](a lambda.Adapter[Ev, Re], got *idem.Request) awslambda.Handler {
	request := a.Request
	a.Request = func(ctx context.Context, ev Ev) (idem.Request, error) {
		req, err := request(ctx, ev)
		*got = req
		return req, err
	}
	stores := func(o *idem.Options) { o.Resumable, o.Function = true, "rides" }
	return lambda.Wrap(anEngine(stores), a, func(context.Context, Ev) (re Re, err error) { return re, nil }, named("spy"))
}
