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
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

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
					_, err = e.Resume(t.Context(), state.TicketFor(rec), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return run(ctx) },
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
	ticket := state.TicketFor(onlyRecord(t, mem2))
	if _, err := stale.Resume(t.Context(), ticket, refuses(t)); err == nil || !strings.Contains(err.Error(), "Options.CallerFromOp") {
		t.Errorf("a program that doesn't take the caller from the operation: %v", err)
	}
	if rec := onlyRecord(t, mem2); rec.State != store.Open || rec.Tries != 1 {
		t.Errorf("the record is %s after %d tries, want open after 1", rec.State, rec.Tries)
	}
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

// Whom nobody names has no operation: neither an empty scope nor an authorizer without a
// subject nor a kind that is the engine's own is a caller.
func TestCallerWithoutAName(t *testing.T) {
	t.Parallel()
	finds := func(scope string, err error) func(*idem.Options) {
		return func(o *idem.Options) {
			o.Scope = func(context.Context, *idem.Request) (string, error) { return scope, err }
		}
	}
	session := idem.Request{Facts: idem.Facts{Session: "build"}}
	for name, tt := range map[string]struct {
		opt  func(*idem.Options)
		r    idem.Request
		why  string // a word of the reason
		want error
	}{
		"an empty scope":              {finds("", nil), idem.Request{}, "empty", nil},
		"no scope":                    {finds("", idem.ErrScope), idem.Request{}, "", nil},
		"a scope that can't be had":   {finds("jane", errDown), idem.Request{}, "", errDown},
		"no identity":                 {asIs, idem.Request{}, "nobody has verified", nil},
		"no subject":                  {asIs, idem.Request{Identity: idem.Identity{Kind: "jwt"}}, "the jwt authorizer names no subject", nil},
		"no kind":                     {asIs, idem.Request{Identity: idem.Identity{Subject: "jane"}}, `kind ""`, nil},
		"a kind of the engine's":      {asIs, idem.Request{Identity: idem.Identity{Kind: "program", Subject: "jane"}}, `kind "program"`, nil},
		"a kind with the separator":   {asIs, idem.Request{Identity: idem.Identity{Kind: "jwt:x", Subject: "jane"}}, `kind "jwt:x"`, nil},
		"a session of a role":         {asIs, session, "lambda.RoleScope", nil},
		"a session, and a wrong kind": {asIs, idem.Request{Facts: session.Facts, Identity: idem.Identity{Kind: "program", Subject: "jane"}}, `kind "program"`, nil},
	} {
		var mem idem.MemoryStore
		r := tt.r
		r.Key, r.Method = "k", "POST"
		_, err := idem.New(&mem, tt.opt).Do(t.Context(), r, never(t))
		if !errors.Is(err, idem.ErrScope) || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.why) || len(mem.Records()) != 0 {
			t.Errorf("%s: %v, want %q", name, err, tt.why)
		}
	}
}

// Under ACP a path is an operation of its own; without paths, a route is.
func TestKeyOfAPath(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, idem.ACP, callertest.Anybody)
	a, b := request, request
	a.Path, b.Path = "/checkouts/1", "/checkouts/2"
	c, d := request, request
	c.Path, c.Route, d.Path, d.Route = "", "POST /one", "", "POST /two"
	for i, r := range []idem.Request{a, b, c, d} {
		if res, err := e.Do(t.Context(), r, answers(201)); err != nil || res.Replayed || len(mem.Records()) != i+1 {
			t.Errorf("%s %s: %+v, %v, %d records", r.Path, r.Route, res, err, len(mem.Records()))
		}
	}
}
