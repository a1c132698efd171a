package calls_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/seal"
)

// A handler that a completer runs again gets the event that the client's request
// was, member by member, from the record. Each member of the event has a value of its
// own; members that can't come back are listed, and are gone indeed. A member that a
// later version of the events adds is filled, too, so it has to be thought of.
func TestResumedEventIsTheFirst(t *testing.T) {
	t.Parallel()
	t.Run("HTTPAPI", func(t *testing.T) {
		t.Parallel()
		resumesAs(t, lambda.HTTPAPI, func(ev *events.APIGatewayV2HTTPRequest) {
			rc := &ev.RequestContext
			ev.Version, ev.Body, ev.Headers = "2.0", binaryBody, headers("content-type", "x-tag")
			ev.RawPath = "/" + rc.Stage + "/riders/zoë smith/rides"
			ev.RawQueryString, ev.QueryStringParameters = "b=x%20y&a=1&a=2", map[string]string{"a": "1,2", "b": "x y"}
			rc.RouteKey, rc.DomainName, rc.DomainPrefix, rc.HTTP.Method, rc.HTTP.Path = ev.RouteKey, "a1.execute-api.example.com", "a1", "POST", ev.RawPath
			rc.Authorizer.JWT.Claims = map[string]string{"iss": "https://issuer.example.com", "sub": "jane", "tier": "gold"}
		}, append(moment("RequestContext.HTTP."), "Cookies",
			"RequestContext.Time", "RequestContext.TimeEpoch", "RequestContext.Authorizer.IAM.AccessKey",
			"RequestContext.Authentication.ClientCert.ClientCertPem")...)
	})
	t.Run("FunctionURL", func(t *testing.T) {
		t.Parallel()
		resumesAs(t, lambda.FunctionURL, func(ev *events.LambdaFunctionURLRequest) {
			rc := &ev.RequestContext
			ev.Version, ev.Body, ev.Headers = "2.0", binaryBody, headers("content-type", "x-tag")
			ev.RawPath, ev.RawQueryString, ev.QueryStringParameters = "/a%2Fb/%zz", "b=x%20y&a=1&a=2", map[string]string{"a": "1,2", "b": "x y"}
			rc.DomainName, rc.DomainPrefix, rc.HTTP.Method, rc.HTTP.Path = "u1.lambda-url.eu-central-1.on.aws", "u1", "POST", ev.RawPath
		}, append(moment("RequestContext.HTTP."), "Cookies", "RequestContext.APIID",
			"RequestContext.Time", "RequestContext.TimeEpoch", "RequestContext.Authorizer.IAM.AccessKey")...)
	})
	t.Run("REST", func(t *testing.T) {
		t.Parallel()
		resumesAs(t, lambda.REST, func(ev *events.APIGatewayProxyRequest) {
			rc := &ev.RequestContext
			ev.HTTPMethod, ev.Body, ev.Path = "POST", binaryBody, "/base/riders/zoë smith"
			ev.QueryStringParameters, ev.MultiValueQueryStringParameters = lastAndAll(map[string][]string{"a": {"1", "2"}, "b": {"x y"}})
			ev.Headers, ev.MultiValueHeaders = lastAndAll(map[string][]string{"Content-Type": {"text/odd"}, "X-Tag": {"1", "2"}, idem.KeyHeader: {"k"}})
			rc.HTTPMethod, rc.ResourcePath, rc.DomainName, rc.DomainPrefix = ev.HTTPMethod, ev.Resource, "a1.execute-api.example.com", "a1"
			rc.Authorizer = map[string]any{"claims": map[string]any{"iss": "https://issuer.example.com", "sub": "jane"}, "level": 1.5, "none": nil}
		}, append(moment("RequestContext.Identity."), "RequestContext.ExtendedRequestID", "RequestContext.RequestTime",
			"RequestContext.RequestTimeEpoch", "RequestContext.ResourceID", "RequestContext.Protocol", "RequestContext.Identity.AccessKey",
			"RequestContext.Identity.APIKey", "RequestContext.Identity.ClientCert.ClientCertPem")...)
	})
	t.Run("ALB", func(t *testing.T) {
		t.Parallel()
		resumesAs(t, lambda.ALB, func(ev *events.ALBTargetGroupRequest) {
			ev.HTTPMethod, ev.Body, ev.Path = "POST", binaryBody, "/a%2Fb/%zz"
			ev.QueryStringParameters, ev.MultiValueQueryStringParameters = lastAndAll(map[string][]string{"a": {"1", "2"}, "b": {"x%20y"}})
			ev.Headers, ev.MultiValueHeaders = lastAndAll(map[string][]string{"content-type": {"text/odd"}, "x-tag": {"1", "2"}, strings.ToLower(idem.KeyHeader): {"k"}})
		})
	})
	t.Run("Direct", func(t *testing.T) {
		t.Parallel()
		type order struct {
			ID    string
			Lines []struct {
				Product string
				Price   *int64
			}
			Notes map[string]any
		}
		resumesAs(t, lambda.Direct[order, string](func(o order) (string, error) { return o.ID, nil }), func(*order) {})
	})
}

// binaryBody is base64, as IsBase64Encoded says, which is true as any bool here.
const binaryBody = "/wACAwQ="

// headers has the names, and the key.
func headers(names ...string) map[string]string {
	h := map[string]string{strings.ToLower(idem.KeyHeader): "k"}
	for _, name := range names {
		h[name] = "the " + name
	}
	return h
}

func lastAndAll(all map[string][]string) (map[string]string, map[string][]string) {
	last := make(map[string]string)
	for name, values := range all {
		last[name] = values[len(values)-1]
	}
	return last, all
}

// moment are members of one moment only, in every event of API Gateway and function URLs.
func moment(caller string) []string {
	lost := []string{"RequestContext.AccountID", "RequestContext.RequestID", caller + "UserAgent"}
	if strings.HasSuffix(caller, "HTTP.") {
		lost = append(lost, caller+"Protocol")
	}
	return lost
}

// resumesAs has a handler fail after its first phase, and a completer run it again, on
// a store in memory, on DynamoDB, and encrypted: with the same event, but for the lost members.
func resumesAs[Ev, Re any](t *testing.T, a lambda.Adapter[Ev, Re], shape func(*Ev), lost ...string) {
	t.Helper()
	var first Ev
	fill(t, reflect.ValueOf(&first).Elem(), "ev")
	shape(&first)
	payload, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	for name, newStore := range map[string]func(*testing.T) kept{"in memory": inMemory, "on DynamoDB": onDynamoDB, "encrypted": encrypted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recs := newStore(t)
			var seen []Ev
			engine := recs.engine(func(o *idem.Options) {
				o.Function, o.Resumable, o.InputHeaders = "f", true, []string{"X-Tag"}
				o.Scope, o.CallerFromOp = func(context.Context, *idem.Request) (string, error) { return "jane", nil }, true
			})
			h := lambda.Wrap(engine, a, func(ctx context.Context, ev Ev) (re Re, err error) {
				seen = append(seen, ev)
				if _, err = idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err == nil && len(seen) == 1 {
					err = errors.New("the provider is down")
				}
				return re, err
			}, func(o *lambda.HandlerOptions) { o.Name = "first" })
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			_, _ = h.Invoke(ctx, payload) // an answer, or the error: as the adapter says
			ticket := recs.ticket(t)
			ticket.Function = "f"
			if o := completer.Invoke(function{h.Invoke}, "f").Resume(ctx, ticket); o.Kind != completer.TicketDone || len(seen) != 2 {
				t.Fatalf("the ticket: %+v, after %d runs", o, len(seen))
			}
			for _, path := range lost {
				was, is := member(t, &seen[0], path), member(t, &seen[1], path)
				if was.IsZero() || !is.IsZero() {
					t.Errorf("%s isn't lost: %v became %v", path, was, is)
				}
				was.SetZero()
			}
			forgetKey(reflect.ValueOf(&seen[0]).Elem())
			if diff := cmp.Diff(seen[0], seen[1]); diff != "" {
				t.Errorf("the event of the second run (-first +second):\n%s", diff)
			}
		})
	}
}

// fill gives each member of v a value of its own.
func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(int64(1000 + len(path)))
	case reflect.Interface:
		v.Set(reflect.ValueOf("any " + path))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), fmt.Sprint(path, i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"one", "two"} {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(t, value, path+" "+key)
			v.SetMapIndex(reflect.ValueOf(key), value)
		}
	default:
		t.Fatalf("%s is a %s", path, v.Type())
	}
}

// member finds what a path such as RequestContext.HTTP.Path names.
func member(t *testing.T, ev any, path string) reflect.Value {
	t.Helper()
	v := reflect.ValueOf(ev).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v = v.FieldByName(name); !v.IsValid() {
			t.Fatalf("the event has no %s", path)
		}
	}
	return v
}

// forgetKey deletes the key, which no record has, from the headers.
func forgetKey(ev reflect.Value) {
	for _, name := range []string{"Headers", "MultiValueHeaders"} {
		if headers := ev.FieldByName(name); headers.IsValid() {
			for _, key := range []string{idem.KeyHeader, strings.ToLower(idem.KeyHeader)} {
				headers.SetMapIndex(reflect.ValueOf(key), reflect.Value{})
			}
		}
	}
}

// function is invoked without a network.
type function struct {
	invoke func(context.Context, []byte) ([]byte, error)
}

func (f function) Invoke(ctx context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	out, err := f.invoke(ctx, in.Payload)
	return &awslambda.InvokeOutput{Payload: out}, err
}

// kept makes an engine on a store of its own, and a ticket for the store's only record.
type kept struct {
	engine func(...func(*idem.Options)) *idem.Engine
	ticket func(*testing.T) jobs.Ticket
}

func inMemory(*testing.T) kept {
	mem := new(idem.MemoryStore)
	return kept{
		func(optFns ...func(*idem.Options)) *idem.Engine {
			return idem.New(mem, append([]func(*idem.Options){callertest.Anybody}, optFns...)...)
		},
		func(t *testing.T) jobs.Ticket {
			t.Helper()
			recs := slices.Collect(maps.Values(mem.Records()))
			if len(recs) != 1 {
				t.Fatalf("%d records", len(recs))
			}
			return state.TicketFor(recs[0])
		},
	}
}

func onDynamoDB(t *testing.T) kept {
	t.Helper()
	return onTable(t)
}

func encrypted(t *testing.T) kept {
	t.Helper()
	provider, err := seal.NewStatic("k", map[string][]byte{"k": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return onTable(t, func(o *dynamo.Options) { o.Seal = seal.New(provider) })
}

func onTable(t *testing.T, optFns ...func(*dynamo.Options)) kept {
	t.Helper()
	s, client, _ := newTable(t, optFns...)
	table := s.Table().Name
	return kept{
		func(optFns ...func(*idem.Options)) *idem.Engine {
			return idem.New(s, append([]func(*idem.Options){callertest.Anybody}, optFns...)...)
		},
		func(t *testing.T) jobs.Ticket {
			t.Helper()
			out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
			if err != nil || len(out.Items) != 1 {
				t.Fatalf("%d items, %v", len(out.Items), err)
			}
			pk, ok := out.Items[0]["pk"].(*types.AttributeValueMemberS)
			if !ok {
				t.Fatal("the record has no key")
			}
			rec, err := s.Load(t.Context(), pk.Value)
			if err != nil {
				t.Fatal(err)
			}
			return state.TicketFor(rec)
		},
	}
}
