package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// nobodys returns a request whose caller nobody has verified.
func nobodys(key string, presented http.Header) idem.Request {
	return idem.Request{Key: key, Method: http.MethodPost, Path: "/orders", Route: "POST /orders", Body: []byte("1"), Header: presented} // of nobody
}

// known is a caller whom the program knows, and whom its handlers take from the operation.
func known(o *idem.Options) {
	o.Scope = func(context.Context, *idem.Request) (string, error) { return "acct_7", nil }
	o.CallerFromOp = true
}

// ann is a request of a verified caller.
var ann = func() idem.Request {
	r := nobodys("k", nil)
	r.Identity = idem.Identity{Kind: "jwt", Subject: "ann"}
	return r
}()

// annsRecord returns the record of ann's request: as claimed, and as finished.
func annsRecord(t *testing.T, opts ...func(*idem.Options)) (claimed, finished *store.Record) {
	t.Helper()
	var st idem.MemoryStore
	_, err := idem.New(&st, opts...).Do(t.Context(), ann, func(context.Context) (idem.Response, error) {
		claimed = onlyRecord(t, &st).Clone()
		return idem.Response{Status: 201, Body: []byte("secret")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return claimed, onlyRecord(t, &st).Clone()
}

// keepsCount answers 201 with the number of its runs.
func keepsCount(runs *int) func(context.Context) (idem.Response, error) {
	return func(context.Context) (idem.Response, error) {
		*runs++
		return idem.Response{Status: 201, Body: fmt.Append(nil, "secret of run ", *runs)}, nil
	}
}

// What a client presents makes nobody of it a caller: sessions, tokens, certificates
// and a load balancer's headers are refused alike, with a line that names the cures.
func TestNobodyIsGuessed(t *testing.T) {
	t.Parallel()
	for name, presented := range map[string]http.Header{
		"nothing":            nil,
		"a token":            {"Authorization": {"Bearer ann"}},
		"an API key":         {"X-Api-Key": {"ann"}},
		"a session":          {"Cookie": {"sid=ann"}},
		"another token":      {"X-Auth-Token": {"ann"}},
		"a certificate":      {"X-Forwarded-Client-Cert": {"Subject=ann"}},
		"OIDC of a balancer": {"X-Amzn-Oidc-Identity": {"ann"}, "X-Amzn-Oidc-Data": {"e30.e30.e30"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			var log strings.Builder
			e := idem.New(&mem, func(o *idem.Options) {
				o.Logger, o.StatusURL = slog.New(slog.NewTextHandler(&log, nil)), "/operations/"
			})
			runs := 0
			if _, err := e.Do(t.Context(), nobodys("k", presented), keepsCount(&runs)); !errors.Is(err, idem.ErrScope) {
				t.Errorf("Do returned %v, want ErrScope", err)
			}
			if _, err := e.Status(t.Context(), nobodys("k", presented)); !errors.Is(err, idem.ErrScope) {
				t.Errorf("Status returned %v, want ErrScope", err)
			}
			h := e.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ }))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader("1"))
			maps.Copy(r.Header, presented)
			r.Header.Set(idem.KeyHeader, "k")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != 500 || !strings.Contains(w.Body.String(), `"code":"scope_unknown"`) {
				t.Errorf("the client got %d %s, want 500 scope_unknown", w.Code, w.Body)
			}
			if runs != 0 || len(mem.Records()) != 0 {
				t.Errorf("%d runs and %d records, want none", runs, len(mem.Records()))
			}
			for _, cure := range []string{"level=ERROR", "authorizer", "Options.Scope", "idem.OneScope", "lambda.APIKeyScope", "lambda.CertificateScope"} {
				if got := strings.Count(log.String(), cure); got < 3 {
					t.Errorf("%q is in %d of 3 lines:\n%s", cure, got, log.String())
				}
			}
		})
	}
}

// Requests without a key need no caller.
func TestKeylessRequestsNeedNoCaller(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Key = idem.KeyOptional })
	runs := 0
	if res, err := e.Do(t.Context(), nobodys("", nil), keepsCount(&runs)); err != nil || res.Status != 201 || !res.Passed {
		t.Errorf("got %d, passed %t, %v", res.Status, res.Passed, err)
	}
}

// The callers of OneScope share random keys. Whoever knows only the key learns nothing,
// unless the program asks for the status resource.
func TestOneScope(t *testing.T) {
	t.Parallel()
	const key = "2MnKT3VtqXzPIdvd0Gq2zA" // 22 characters
	var mem idem.MemoryStore
	e := idem.New(&mem, idem.OneScope)
	runs := 0
	for i, h := range []http.Header{{"Authorization": {"Bearer ann"}}, {"Authorization": {"Bearer bob"}}} { // such as a refreshed token
		if res, err := e.Do(t.Context(), nobodys(key, h), keepsCount(&runs)); err != nil || res.Replayed != (i == 1) {
			t.Errorf("%d: replayed %t, %v", i, res.Replayed, err)
		}
	}
	for _, rec := range mem.Records() {
		if rec.Scope != "one:" {
			t.Errorf("the scope is %q, want one:", rec.Scope)
		}
	}
	for _, other := range []string{"ann", "bob"} {
		r := nobodys("k", nil) // a verified caller's key may be short
		r.Identity = idem.Identity{Kind: "jwt", Subject: other}
		if res, err := e.Do(t.Context(), r, keepsCount(&runs)); err != nil || res.Replayed {
			t.Errorf("%s: replayed %t, %v", other, res.Replayed, err)
		}
	}
	if _, err := e.Do(t.Context(), nobodys(key[1:], nil), keepsCount(&runs)); !errors.Is(err, idem.ErrKeyInvalid) {
		t.Errorf("a short key: %v, want ErrKeyInvalid", err)
	}
	short := func(o *idem.Options) { o.MinKey = 1 }
	if _, err := idem.New(&mem, idem.OneScope, short).Do(t.Context(), nobodys(key[1:], nil), keepsCount(&runs)); err != nil {
		t.Errorf("a short key with a MinKey of 1: %v", err)
	}
	if _, err := e.Status(t.Context(), nobodys(key, nil)); !errors.Is(err, idem.ErrKeyUnknown) {
		t.Errorf("the status resource answers to whoever knows the key: %v, want ErrKeyUnknown", err)
	}
	if re := e.ServeStatus(t.Context(), idem.Request{Method: http.MethodGet, Key: key}); re.Status != 404 { // of nobody
		t.Errorf("the status resource answers %d, want 404", re.Status)
	}
	asked := idem.New(&mem, idem.OneScope, func(o *idem.Options) { o.StatusURL = "/operations/" })
	if res, err := asked.Status(t.Context(), nobodys(key, nil)); err != nil || !res.Replayed {
		t.Errorf("with StatusURL: replayed %t, %v", res.Replayed, err)
	}
}

// Every attempt knows its caller: the first, a client's retry, and a completer's.
func TestCallerOfEveryAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  func(*idem.Options)
		req  func(*idem.Request)
		want idem.Identity
	}{
		"Options.Scope":  {known, func(*idem.Request) {}, idem.Identity{Kind: "program", Subject: "acct_7"}},
		"Request.Scope":  {func(o *idem.Options) { o.CallerFromOp = true }, func(r *idem.Request) { r.Scope = "jwt:x|y%" }, idem.Identity{Kind: "program", Subject: "jwt:x|y%"}},
		"Request.Source": {func(*idem.Options) {}, func(r *idem.Request) { r.Source = "arn:aws:sqs:q" }, idem.Identity{Kind: "source", Subject: "arn:aws:sqs:q"}},
		"a verified identity of a tenant": {func(*idem.Options) {}, func(r *idem.Request) {
			r.Identity, r.Tenant, r.Operation = idem.Identity{Kind: "jwt", Subject: "iss|ann"}, "blue|", "op|"
		}, idem.Identity{Kind: "jwt", Subject: "iss|ann"}},
		"OneScope": {func(o *idem.Options) { idem.OneScope(o); o.MinKey, o.CallerFromOp = 1, true }, func(*idem.Request) {}, idem.Identity{Kind: "one"}},
	} {
		for _, completer := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/completer=%t", name, completer), func(t *testing.T) {
				t.Parallel()
				var mem idem.MemoryStore
				e := idem.New(&mem, tc.set, func(o *idem.Options) { o.Resumable, o.Function = true, "f" })
				r := nobodys("k", nil)
				tc.req(&r)
				attempts := 0
				run := func(ctx context.Context) (idem.Response, error) {
					op, ok := idem.FromContext(ctx)
					if !ok || op.Caller() != tc.want {
						t.Errorf("attempt %d is %+v's, want %+v", attempts, op.Caller(), tc.want)
					}
					if attempts++; attempts == 1 {
						return idem.Response{}, errors.New("down")
					}
					return idem.Response{Status: 201}, nil
				}
				if _, err := e.Do(t.Context(), r, run); err == nil {
					t.Fatal("the first attempt has succeeded")
				}
				var err error
				if completer {
					rec := onlyRecord(t, &mem)
					_, err = e.Resume(t.Context(), jobs.TicketFor(rec), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return run(ctx) },
						func(o *idem.ResumeOptions) { o.Tenant = r.Tenant })
				} else {
					_, err = e.Do(t.Context(), r, run)
				}
				if err != nil || attempts != 2 {
					t.Errorf("%d attempts, %v", attempts, err)
				}
			})
		}
	}
}

// A completer would work for the wrong caller where the handlers take the caller from
// the client's request: no such request is stored, and none of a former program is run.
func TestCompleterNeedsTheCallerFromTheOperation(t *testing.T) {
	t.Parallel()
	resumable := func(o *idem.Options) { o.Resumable, o.Function = true, "f" }
	fromHeader := func(o *idem.Options) {
		o.Scope = func(_ context.Context, r *idem.Request) (string, error) { return r.Header.Get("X-Account"), nil }
	}
	func() {
		defer func() {
			if v := fmt.Sprint(recover()); !strings.Contains(v, "Op.Caller") || !strings.Contains(v, "Options.CallerFromOp") {
				t.Errorf("New panicked with %s, want the cures", v)
			}
		}()
		idem.New(&idem.MemoryStore{}, resumable, fromHeader)
	}()

	var mem idem.MemoryStore
	adapters := nobodys("k", nil)
	adapters.Scope = "acct_7"
	runs := 0
	without := idem.New(&mem, resumable)
	if _, err := without.Do(t.Context(), adapters, keepsCount(&runs)); !errors.Is(err, idem.ErrScope) || !strings.Contains(err.Error(), "Options.CallerFromOp") {
		t.Errorf("a scope of the adapter: %v, want ErrScope and the cure", err)
	}
	if runs != 0 || len(mem.Records()) != 0 {
		t.Errorf("%d runs and %d records, want none", runs, len(mem.Records()))
	}
	adapters.Redelivered = true // its source repeats it, so it isn't stored
	if _, err := without.Do(t.Context(), adapters, keepsCount(&runs)); err != nil {
		t.Errorf("a redelivered request: %v", err)
	}
	adapters.Redelivered = false

	mem2 := new(idem.MemoryStore)
	with, stale := idem.New(mem2, resumable, func(o *idem.Options) { o.CallerFromOp = true }), idem.New(mem2, resumable)
	if _, err := with.Do(t.Context(), adapters, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }); err == nil {
		t.Fatal("the first attempt has succeeded")
	}
	ticket := jobs.TicketFor(onlyRecord(t, mem2))
	if _, err := stale.Resume(t.Context(), ticket, refuses(t)); err == nil || !strings.Contains(err.Error(), "Options.CallerFromOp") {
		t.Errorf("a program that doesn't take the caller from the operation: %v", err)
	}
	if rec := onlyRecord(t, mem2); rec.State != store.Open || rec.Tries != 1 {
		t.Errorf("the record is %s after %d tries, want open after 1", rec.State, rec.Tries)
	}
}

// Outside of Lambda each program would be "", so another one's 404 could end the
// operation.
func TestResumableNeedsAFunction(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "Options.Function") {
			t.Errorf("New panicked with %s, want the cure", v)
		}
	}()
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "")
	idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Resumable = true })
}

// The name of a caller that a record can't hold would be another one in a later attempt,
// and that of two callers.
func TestCallersAreNamedInUTF8(t *testing.T) {
	t.Parallel()
	const odd = "caf\xe9"
	halved := idem.Identity{Kind: "jwt"} // half of a surrogate pair, as encoding/json decodes it
	if err := json.Unmarshal([]byte(`"ann\ud800"`), &halved.Subject); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		set func(*idem.Options)
		req idem.Request
	}{
		"Options.Scope": {func(o *idem.Options) {
			o.Scope = func(context.Context, *idem.Request) (string, error) { return odd, nil }
		}, idem.Request{}},
		"Request.Scope": {known, idem.Request{Scope: odd}},
		"a source":      {known, idem.Request{Source: odd}},
		"half a pair":   {func(*idem.Options) {}, idem.Request{Identity: halved}},
		"an identity":   {func(*idem.Options) {}, idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: odd}}},
	} {
		tt.req.Key, tt.req.Method = "k", "POST"
		if _, err := idem.New(&idem.MemoryStore{}, tt.set).Do(t.Context(), tt.req, never(t)); !errors.Is(err, idem.ErrScope) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
