package check_test

import (
	"context"
	crand "crypto/rand"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/check"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/servers/apigateway"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/checktest"
	"github.com/samekey/samekey/lambda"
)

// sessions returns a merchant's template with which every check is made.
func sessions(url string) check.Template {
	return check.Template{
		URL: url + "/sessions", Body: []byte(`{"items":[{"id":"a","quantity":1},{"id":"b","quantity":2}]}`),
		Header: http.Header{"Authorization": {"Bearer s3cret-of-jane"}}, OtherCaller: http.Header{"Authorization": {"Bearer s3cret-of-omar"}},
	}
}

func under(contract string) func(*check.Options) {
	return func(o *check.Options) { o.Contract = contract }
}

// whole checks that a report has no fault and every check was made.
func whole(t *testing.T, report *check.Report, contract string) {
	t.Helper()
	if report.Faults != 0 {
		t.Errorf("%v: %+v", report.Broken(contract), report.Checks)
	}
	for _, o := range report.Checks {
		if o.Why != "" || o.Under[contract] == check.NotKnown {
			t.Errorf("%s: %s %s", o.Check, o.Under[contract], o.Why)
		}
	}
	if n := len(check.Checks(contract)); len(report.Checks) != n || n < 10 {
		t.Errorf("%d checks of %d were made", len(report.Checks), n)
	}
}

// A correct merchant breaks no rule, and carries out as many requests as planned.
func TestRightMerchants(t *testing.T) {
	t.Parallel()
	for _, contract := range []string{check.ACP, check.UCP} {
		t.Run(contract, func(t *testing.T) {
			t.Parallel()
			m := checktest.WrongMerchant(contract == check.UCP, check.DefaultRacers)
			report := examine(t, m, sessions, under(contract))
			whole(t, report, contract)
			plan, err := check.Make(sessions("http://host"), under(contract))
			if err != nil || m.Effects() != plan.Effects {
				t.Errorf("%v: %d effects, %d were announced", err, m.Effects(), plan.Effects)
			}
		})
	}
}

// The checks find exactly the rules that each planted fault breaks.
func TestWrongMerchants(t *testing.T) {
	t.Parallel()
	for _, f := range checktest.MerchantFaults() {
		for contract, want := range map[string][]string{check.ACP: f.ACP, check.UCP: f.UCP} {
			if want == nil {
				continue
			}
			t.Run(contract+" "+f.Name, func(t *testing.T) {
				t.Parallel()
				m := checktest.WrongMerchant(contract == check.UCP, check.DefaultRacers, f.Name)
				report := examine(t, m, sessions, under(contract))
				if diff := cmp.Diff(want, report.Broken(contract)); diff != "" {
					t.Errorf("a merchant that %s breaks (-want +got):\n%s%+v", f.Does, diff, report.Checks)
				}
				if plan, err := check.Make(sessions("http://host"), under(contract)); err != nil || m.Effects() > plan.Most {
					t.Errorf("%v: %d effects, at most %d were announced", err, m.Effects(), plan.Most)
				}
			})
		}
	}
}

// The check adds numbers, nulls and arrays to a body without them. If the
// API refuses an unknown member, the report says what was not examined.
func TestSpellingsOfAPlainBody(t *testing.T) {
	t.Parallel()
	plain := func(url string) check.Template {
		tp := sessions(url)
		tp.Body = []byte(`{"cart":"c1"}`)
		return tp
	}
	for fault, want := range map[string]string{"numbers": "respelled-refused", "kept-null-absent": "null-absent", "null-absent": "null-absent", "unordered": "array-order"} {
		report := examine(t, checktest.WrongMerchant(false, check.DefaultRacers, fault), plain, under(check.ACP))
		if got := report.Broken(check.ACP); !slices.Equal(got, []string{want}) || len(report.Notes) > 0 {
			t.Errorf("%s: %v, notes %q", fault, got, report.Notes)
		}
	}
	m := checktest.WrongMerchant(false, check.DefaultRacers, "numbers")
	strict := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "samekey_check") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		m.ServeHTTP(w, r)
	})
	notes := strings.Join(examine(t, strict, plain, under(check.ACP)).Notes, "\n")
	for _, says := range []string{"answers 400 to a body with an unknown member", "the spelling 1.0 for 1 was not examined", "has no null, so the rule null-absent was not", "array-order was not"} {
		if !strings.Contains(notes, says) {
			t.Errorf("no note says %q: %s", says, notes)
		}
	}
	own := func(url string) check.Template {
		tp := sessions(url)
		tp.Body = []byte(`{"items":[{"id":"a","quantity":1,"note":null},{"id":"b","quantity":2}]}`)
		return tp
	}
	for fault, want := range map[string]string{"numbers": "respelled-refused", "null-absent": "null-absent", "unordered": "array-order"} {
		m = checktest.WrongMerchant(false, check.DefaultRacers, fault)
		if report := examine(t, strict, own, under(check.ACP)); !slices.Contains(report.Broken(check.ACP), want) || len(report.Notes) > 1 {
			t.Errorf("%s: %v, notes %q", fault, report.Broken(check.ACP), report.Notes)
		}
	}
}

// Every commerce rule has a planted fault, which shows that the rule can fail.
func TestEveryCommerceRuleHasAFault(t *testing.T) {
	t.Parallel()
	for _, contract := range []string{check.ACP, check.UCP} {
		broken := make(map[string]bool)
		for _, f := range checktest.MerchantFaults() {
			for _, r := range map[string][]string{check.ACP: f.ACP, check.UCP: f.UCP}[contract] {
				broken[r] = true
			}
		}
		for _, r := range check.CommerceRules() {
			if _, has := r.Sections[contract]; has && !broken[r.Name] {
				t.Errorf("%s: no fault breaks %s", contract, r.Name)
			}
			delete(broken, r.Name)
		}
		if len(broken) > 0 {
			t.Errorf("%s: faults break rules that there are not: %v", contract, broken)
		}
	}
}

// Each commerce preset keeps its contract, behind each front.
func TestCommercePresets(t *testing.T) {
	t.Parallel()
	fronts := map[string]func(*testing.T, *idem.Engine, http.Handler) http.Handler{
		"Router": func(t *testing.T, e *idem.Engine, h http.Handler) http.Handler {
			router := lambda.NewRouter(lambda.HTTPAPI)
			for _, p := range []string{"POST /sessions", "POST /sessions/{id}", "PUT /sessions/{id}", "POST /sessions/{id}/complete", "POST /sessions/{id}/cancel"} {
				if e.CheckRoute(p) != nil {
					continue
				}
				router.Keyed(p, e, func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
					r := httptest.NewRequestWithContext(ctx, ev.RequestContext.HTTP.Method, ev.RawPath, strings.NewReader(ev.Body))
					r.Header.Set("Idempotency-Key", ev.Headers["idempotency-key"])
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, r)
					return events.APIGatewayV2HTTPResponse{StatusCode: rec.Code, Headers: map[string]string{"Content-Type": "application/json"}, Body: rec.Body.String()}, nil
				})
			}
			return commerceGateway(t, lambdarun.InvokerFunc(router.Invoke))
		},
		"net http": func(_ *testing.T, e *idem.Engine, h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx := context.WithValue(r.Context(), authorization{}, r.Header.Get("Authorization"))
				e.Middleware(h).ServeHTTP(w, r.WithContext(ctx))
			})
		},
	}
	for contract, preset := range map[string]func(*idem.Options){check.ACP: idem.ACP, check.UCP: idem.UCP} {
		for name, front := range fronts {
			t.Run(contract+" "+name, func(t *testing.T) {
				t.Parallel()
				race := &checktest.Race{N: check.DefaultRacers}
				plain := checktest.WrongMerchant(contract == check.UCP, 0)
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					race.Inside(r.Context(), r.Header.Get("Idempotency-Key"))
					body, _ := io.ReadAll(r.Body)
					r = r.WithContext(r.Context())
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					r.Header.Set("Idempotency-Key", crand.Text())
					rec := httptest.NewRecorder()
					plain.ServeHTTP(rec, r)
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(rec.Code)
					_, _ = w.Write(rec.Body.Bytes())
				})
				e := idem.New(&idem.MemoryStore{}, preset, func(o *idem.Options) {
					o.Logger = slog.New(slog.DiscardHandler)
					if name == "net http" {
						o.Scope = func(ctx context.Context, _ *idem.Request) (string, error) {
							caller, _ := ctx.Value(authorization{}).(string)
							return caller, nil
						}
					}
				})
				report := examine(t, race.Outside(front(t, e, h)), sessions, under(contract))
				whole(t, report, contract)
				if !slices.Equal(report.Notes, nil) {
					t.Errorf("notes %q", report.Notes)
				}
			})
		}
	}
	// The default contract keeps neither: it refuses the same key on another path.
	m := checktest.WrongMerchant(false, 0)
	e := idem.New(&idem.MemoryStore{}, callertest.ByToken, quiet)
	report := examine(t, e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Idempotency-Key", crand.Text())
		m.ServeHTTP(w, r)
	})), sessions, under(check.ACP))
	for _, rule := range []string{"respelled-refused", "path-refused", "error-body", "request-id-unechoed"} {
		if !slices.Contains(report.Broken(check.ACP), rule) {
			t.Errorf("the default contract keeps %s: %v", rule, report.Broken(check.ACP))
		}
	}
}

type authorization struct{}

func commerceGateway(t *testing.T, invoke lambdarun.Invoker) http.Handler {
	t.Helper()
	fn := lambdarun.InProcess(invoke, 5*time.Minute)
	t.Cleanup(func() { _ = fn.Close() })
	return apigateway.HTTPAPI(fn, func(o *apigateway.HTTPAPIOptions) {
		o.IntegrationTimeout = 5 * time.Minute
		o.Authorizer = func(r *http.Request) (*apigateway.Identity, error) {
			return apigateway.JWT(map[string]string{"iss": "https://issuer.example", "sub": r.Header.Get("Authorization")}), nil
		}
	})
}

// A merchant may have its own paths, bodies and place of the id; wrong values are errors.
func TestMerchantsTemplates(t *testing.T) {
	t.Parallel()
	m := checktest.WrongMerchant(false, check.DefaultRacers)
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/done/"); ok {
			r.URL.Path = "/sessions/" + rest + "/complete"
		}
		rec := httptest.NewRecorder()
		m.ServeHTTP(rec, r)
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		_, _ = io.WriteString(w, strings.Replace(rec.Body.String(), `{"id":`, `{"a/b":{"id":"x"},"sessionId":`, 1))
	})
	template := func(url string) check.Template {
		tp := sessions(url)
		tp.Checkout = check.Checkout{ID: "/sessionId", Complete: check.Operation{Path: "/done/{id}", Body: []byte(`{"token":"t"}`)}}
		return tp
	}
	whole(t, examine(t, own, template, under(check.ACP)), check.ACP)
	report := examine(t, own, sessions, under(check.ACP))
	for _, o := range report.Checks {
		if o.Check == "cancel" && !strings.Contains(o.Why, "has no text at /id: give --id-pointer") {
			t.Errorf("%+v", o)
		}
	}
	for says, edit := range map[string]func(*check.Template){
		"the body must be a JSON object":                                    func(t *check.Template) { t.Body = []byte("[1]") },
		`the path "/cancel" has no {id}`:                                    func(t *check.Template) { t.Checkout.Cancel.Path = "/cancel" },
		"the request body for the path {id}/complete must be a JSON object": func(t *check.Template) { t.Checkout.Complete.Body = []byte("x") },
	} {
		tp := sessions("http://host")
		edit(&tp)
		if _, err := check.Make(tp, under(check.ACP)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}
