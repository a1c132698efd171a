package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

const refusedCredentials = "idempotency_credentials"

// presenting returns a request of an unverified caller.
func presenting(h map[string]string) idem.Request {
	r := idem.Request{Key: "k", Method: http.MethodPost, Path: "/orders", Body: []byte("1"), Header: make(http.Header)}
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return r
}

var (
	ann = presenting(map[string]string{"Authorization": "Bearer ann"})
	bob = presenting(map[string]string{"Authorization": "Bearer bob"})
)

// keepsCount answers 201 with the number of its runs.
func keepsCount(runs *int) func(context.Context) (idem.Response, error) {
	return func(context.Context) (idem.Response, error) {
		*runs++
		return idem.Response{Status: 201, Body: fmt.Append(nil, "secret of run ", *runs)}, nil
	}
}

func TestOtherCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	changes := map[string]struct {
		change  func(*http.Request)
		refused bool
	}{
		"the same":               {func(*http.Request) {}, false},
		"another token":          {func(r *http.Request) { r.Header.Set("Authorization", "Bearer bob") }, true},
		"no token":               {func(r *http.Request) { r.Header.Del("Authorization") }, true},
		"a second token":         {func(r *http.Request) { r.Header.Add("Authorization", "Bearer bob") }, true},
		"another API key":        {func(r *http.Request) { r.Header.Set("X-Api-Key", "live-2") }, true},
		"no API key":             {func(r *http.Request) { r.Header.Del("X-Api-Key") }, true},
		"another host":           {func(r *http.Request) { r.Host = "b.example" }, true},
		"another forwarded host": {func(r *http.Request) { r.Header.Set("X-Forwarded-Host", "b.example") }, true},
		"the host in capitals":   {func(r *http.Request) { r.Host = "A.Example" }, false},
		"another session":        {func(r *http.Request) { r.Header.Set("Cookie", "sid=2; theme=dark") }, true},
		"no session":             {func(r *http.Request) { r.Header.Del("Cookie") }, true},
		"another cookie beside":  {func(r *http.Request) { r.Header.Set("Cookie", "theme=light; sid=1") }, false},
		"another account":        {func(r *http.Request) { r.Header.Set("X-Account", "acct_2") }, true},
		"another trace":          {func(r *http.Request) { r.Header.Set("Traceparent", "00-2-2-01") }, false},
	}
	for name, tc := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			e := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Credentials = []string{"Cookie:sid", "x-account"} })
			h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				runs++
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "secret")
			}))
			send := func(change func(*http.Request)) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://a.example/orders", strings.NewReader("1"))
				for name, value := range map[string]string{
					"Idempotency-Key": "k", "Authorization": "Bearer ann", "X-Api-Key": "live-1", "X-Account": "acct_1", "Cookie": "sid=1; theme=dark",
				} {
					r.Header.Set(name, value)
				}
				change(r)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w
			}
			if w := send(func(*http.Request) {}); w.Code != 201 {
				t.Fatalf("first: %d %s", w.Code, w.Body)
			}
			w := send(tc.change)
			switch replayed := w.Header().Get(idem.ReplayedHeader) == "true"; {
			case runs != 1:
				t.Errorf("the handler ran %d times", runs)
			case tc.refused && (w.Code != 422 || !strings.Contains(w.Body.String(), `"code":"`+refusedCredentials+`"`)):
				t.Errorf("got %d %s, want a refusal", w.Code, w.Body)
			case tc.refused && (replayed || strings.Contains(w.Body.String(), "secret")):
				t.Errorf("the answer is shown: %s", w.Body)
			case !tc.refused && (w.Code != 201 || !replayed):
				t.Errorf("got %d %s, want a replay", w.Code, w.Body)
			}
			if w := send(func(*http.Request) {}); w.Code != 201 || w.Header().Get(idem.ReplayedHeader) != "true" {
				t.Errorf("the first caller afterwards: %d %s, want its replay", w.Code, w.Body)
			}
		})
	}
}

// annsRecord returns the record of ann's request: as claimed, and as finished.
func annsRecord(t *testing.T, opts ...func(*idem.Options)) (claimed, finished *store.Record) {
	t.Helper()
	var st idem.MemoryStore
	only := func() *store.Record {
		for _, rec := range st.Records() {
			return rec
		}
		t.Fatal("there is no record")
		return nil
	}
	_, err := idem.New(&st, opts...).Do(t.Context(), ann, func(context.Context) (idem.Response, error) {
		claimed = only().Clone()
		return idem.Response{Status: 201, Body: []byte("secret")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return claimed, only().Clone()
}

// Whatever the state of a key, and however an answer is requested, another caller
// gets neither the answer nor a run.
func TestOtherCredentialsOnEveryPath(t *testing.T) {
	t.Parallel()
	states := map[string]func(open, done *store.Record) *store.Record{
		"in flight": func(open, _ *store.Record) *store.Record { return open },
		"abandoned": func(open, _ *store.Record) *store.Record { open.Lease = time.Time{}; return open },
		"abandoned after a phase": func(open, _ *store.Record) *store.Record {
			open.Lease, open.Expires, open.Keep, open.Ver = time.Time{}, time.Time{}, store.KeepOpen, 2
			open.Phases = []store.Phase{{Name: "one", Result: []byte("1")}}
			return open
		},
		"finished": func(_, done *store.Record) *store.Record { return done },
		"finished, with jobs": func(_, done *store.Record) *store.Record {
			done.Keep, done.Until, done.Expires = store.KeepJobs, done.Expires, time.Time{}
			return done
		},
		"expired, with a tombstone": func(_, done *store.Record) *store.Record {
			done.Until = done.Created.Add(-time.Hour)
			return done
		},
		"stuck": func(open, _ *store.Record) *store.Record {
			open.State, open.Lease, open.Expires, open.Keep = store.Stuck, time.Time{}, time.Time{}, store.KeepOpen
			return open
		},
	}
	modes := map[string]func(*idem.Options){
		"default":      func(*idem.Options) {},
		"wait":         func(o *idem.Options) { o.InFlight = idem.InFlightWait },
		"accept":       func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" },
		"read first":   func(o *idem.Options) { o.ReadFirst = true },
		"cache":        func(o *idem.Options) { o.CacheBytes = 1 << 20 },
		"merged claim": func(o *idem.Options) { o.MergeClaim = true },
		"resumable":    func(o *idem.Options) { o.Resumable = true },
		"fail open":    func(o *idem.Options) { o.FailOpen = true },
		"Stripe":       idem.Stripe,
	}
	ways := map[string]func(context.Context, *idem.Engine, idem.Request, *int) (idem.Result, error){
		"Do": func(ctx context.Context, e *idem.Engine, r idem.Request, runs *int) (idem.Result, error) {
			return e.Do(ctx, r, keepsCount(runs))
		},
		"Do, an answer that isn't kept": func(ctx context.Context, e *idem.Engine, r idem.Request, runs *int) (idem.Result, error) {
			return e.Do(ctx, r, func(context.Context) (idem.Response, error) {
				*runs++
				return idem.Response{Status: 500, Body: []byte("secret")}, nil
			})
		},
		"Do, a phase": func(ctx context.Context, e *idem.Engine, r idem.Request, runs *int) (idem.Result, error) {
			return e.Do(ctx, r, func(ctx context.Context) (idem.Response, error) {
				*runs++
				if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
					return idem.Response{}, err
				}
				return idem.Response{Status: 201, Body: []byte("secret")}, nil
			})
		},
		"Status": func(ctx context.Context, e *idem.Engine, r idem.Request, _ *int) (idem.Result, error) {
			r.Method, r.Body = http.MethodGet, nil
			return e.Status(ctx, r)
		},
	}
	for state, recordOf := range states {
		for mode, set := range modes {
			for way, ask := range ways {
				t.Run(state+"/"+mode+"/"+way, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						quiet := func(o *idem.Options) { o.Logger = slog.New(slog.DiscardHandler) }
						var st idem.MemoryStore
						before := recordOf(annsRecord(t, set, quiet, func(o *idem.Options) { o.MergeClaim = false }))
						if _, err := st.Claim(t.Context(), store.Claim{Next: before, Now: time.Now()}); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Second) //nolint:forbidigo // virtual
						e := idem.New(&st, set, quiet)
						runs := 0
						if mode == "cache" && before.State == store.Done {
							_, _ = e.Do(t.Context(), ann, keepsCount(&runs)) // fills the cache, if there is an answer to replay
						}
						begun := time.Now()
						res, err := ask(t.Context(), e, bob, &runs)
						if !errors.Is(err, idem.ErrCredentials) || res.Status != 0 || res.Body != nil {
							t.Errorf("bob gets %d %s, %v", res.Status, res.Body, err)
						}
						if mode != "merged claim" && runs != 0 {
							t.Error("bob's request ran")
						}
						if mode != "merged claim" && time.Since(begun) > 0 {
							t.Errorf("bob waited for %v", time.Since(begun))
						}
						for _, after := range st.Records() {
							if diff := cmp.Diff(before, after); diff != "" {
								t.Errorf("bob changed the record (-before +after):\n%s", diff)
							}
						}
						if _, err := ask(t.Context(), e, ann, &runs); errors.Is(err, idem.ErrCredentials) {
							t.Errorf("ann is refused: %v", err)
						}
					})
				})
			}
		}
	}
}

// Equal values of different headers are different credentials.
func TestCredentialsKnowTheirHeader(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{})
	runs := 0
	if _, err := e.Do(t.Context(), presenting(map[string]string{"Authorization": "x"}), keepsCount(&runs)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Do(t.Context(), presenting(map[string]string{"X-Api-Key": "x"}), keepsCount(&runs)); !errors.Is(err, idem.ErrCredentials) {
		t.Errorf("got %v", err)
	}
}

// Observing refuses no caller, and reports the outcome.
func TestOtherCredentialsObserved(t *testing.T) {
	t.Parallel()
	var told []error
	e := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.Key = idem.KeyObserve
		o.Hooks.Observed = func(_ context.Context, ev idem.Event) { told = append(told, ev.Err) }
	})
	runs := 0
	for _, r := range []idem.Request{ann, bob} {
		if res, err := e.Do(t.Context(), r, keepsCount(&runs)); err != nil || res.Status != 201 {
			t.Errorf("%d, %v", res.Status, err)
		}
	}
	if runs != 2 || len(told) != 1 || !errors.Is(told[0], idem.ErrCredentials) {
		t.Errorf("%d runs, told %v", runs, told)
	}
}

// A freed key is open to any caller, like a new key.
func TestFreedKeyHasNoCredentials(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{})
	refuses := func(context.Context) (idem.Response, error) { return idem.Response{Status: 400}, nil }
	if res, err := e.Do(t.Context(), ann, refuses); err != nil || res.Status != 400 {
		t.Fatal(res, err)
	}
	runs := 0
	if res, err := e.Do(t.Context(), bob, keepsCount(&runs)); err != nil || res.Status != 201 {
		t.Errorf("%d, %v", res.Status, err)
	}
}

func TestWhatTurnsCredentialsOff(t *testing.T) {
	t.Parallel()
	verified := func(r idem.Request) idem.Request {
		r.Identity = idem.Identity{Kind: "jwt", Subject: "ann"}
		return r
	}
	scoped := func(r idem.Request) idem.Request { r.Scope = "s"; return r }
	for name, tc := range map[string]struct {
		set  func(*idem.Options)
		with func(idem.Request) idem.Request
	}{
		"OneScope": {idem.OneScope, func(r idem.Request) idem.Request { return r }},
		"Options.Scope": {func(o *idem.Options) {
			o.Scope = func(context.Context, *idem.Request) (string, error) { return "s", nil }
		}, func(r idem.Request) idem.Request { return r }},
		"Request.Scope":     {func(*idem.Options) {}, scoped},
		"verified identity": {func(*idem.Options) {}, verified},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var store idem.MemoryStore
			e := idem.New(&store, tc.set)
			runs := 0
			for i, r := range []idem.Request{tc.with(ann), tc.with(bob)} { // like a refreshed token
				res, err := e.Do(t.Context(), r, keepsCount(&runs))
				if err != nil || res.Replayed != (i == 1) {
					t.Errorf("%d: replayed %t, %v", i, res.Replayed, err)
				}
			}
			for _, rec := range store.Records() {
				if rec.Cred != "" {
					t.Errorf("credentials are in the record: %s", rec.Cred)
				}
			}
		})
	}
}

// OneScope is only for unverified callers.
func TestOneScopeKeepsVerifiedCallersApart(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, idem.OneScope)
	runs := 0
	for _, subject := range []string{"", "ann", "bob"} {
		r := ann
		if subject != "" {
			r.Identity = idem.Identity{Kind: "jwt", Subject: subject}
		}
		if res, err := e.Do(t.Context(), r, keepsCount(&runs)); err != nil || res.Replayed {
			t.Errorf("%q: replayed %t, %v", subject, res.Replayed, err)
		}
	}
}

// Records made before credentials were stored, or under OneScope, still replay to
// any caller.
func TestRecordsWithoutCredentialsReplay(t *testing.T) {
	t.Parallel()
	var store idem.MemoryStore
	runs := 0
	if _, err := idem.New(&store, idem.OneScope).Do(t.Context(), ann, keepsCount(&runs)); err != nil {
		t.Fatal(err)
	}
	for _, r := range []idem.Request{ann, bob} {
		if res, err := idem.New(&store).Do(t.Context(), r, keepsCount(&runs)); err != nil || !res.Replayed {
			t.Errorf("replayed %t, %v", res.Replayed, err)
		}
	}
	// The reverse: OneScope finds records made without OneScope.
	var other idem.MemoryStore
	if _, err := idem.New(&other).Do(t.Context(), ann, keepsCount(&runs)); err != nil {
		t.Fatal(err)
	}
	if res, err := idem.New(&other, idem.OneScope).Do(t.Context(), bob, keepsCount(&runs)); err != nil || !res.Replayed {
		t.Errorf("replayed %t, %v", res.Replayed, err)
	}
}

// Stored credentials can't be read, differ for each key, and are the same on
// every host.
func TestCredentialsAtRest(t *testing.T) {
	t.Parallel()
	secret := func(id string) idem.Secret { return idem.Secret{ID: id, Key: []byte("0123456789abcdef" + id)} }
	with := func(secrets ...idem.Secret) func(*idem.Options) {
		return func(o *idem.Options) { o.Fingerprint.Secrets = secrets }
	}
	stored := func(key string, set func(*idem.Options)) string {
		var store idem.MemoryStore
		r := ann
		r.Key = key
		runs := 0
		if _, err := idem.New(&store, set).Do(t.Context(), r, keepsCount(&runs)); err != nil {
			t.Fatal(err)
		}
		for _, rec := range store.Records() {
			if all := fmt.Sprintf("%+v", rec); strings.Contains(all, "Bearer") {
				t.Errorf("the token is in the record: %s", all)
			}
			return rec.Cred
		}
		return ""
	}
	plain := stored("k", with())
	if len(plain) != 64 || plain != stored("k", with()) {
		t.Errorf("%q is not the same on every host", plain)
	}
	seen := map[string]bool{plain: true}
	for name, other := range map[string]string{
		"another key": stored("k2", with()), "a secret": stored("k", with(secret("a"))), "another secret": stored("k", with(secret("b"))),
	} {
		if seen[other] {
			t.Errorf("%s: the same hash", name)
		}
		seen[other] = true
	}

	// A secret may be rotated, but must not be lost.
	var store idem.MemoryStore
	runs := 0
	if _, err := idem.New(&store, with(secret("a"))).Do(t.Context(), ann, keepsCount(&runs)); err != nil {
		t.Fatal(err)
	}
	rotated := idem.New(&store, with(secret("b"), secret("a")))
	if res, err := rotated.Do(t.Context(), ann, keepsCount(&runs)); err != nil || !res.Replayed {
		t.Errorf("rotated: replayed %t, %v", res.Replayed, err)
	}
	if _, err := rotated.Do(t.Context(), bob, keepsCount(&runs)); !errors.Is(err, idem.ErrCredentials) {
		t.Errorf("rotated: bob gets %v", err)
	}
	lost := idem.New(&store, with(secret("b")))
	if _, err := lost.Do(t.Context(), ann, keepsCount(&runs)); !errors.Is(err, idem.ErrSecret) {
		t.Errorf("lost: %v", err)
	}
	status := ann
	status.Method, status.Body = http.MethodGet, nil
	if _, err := lost.Status(t.Context(), status); !errors.Is(err, idem.ErrSecret) {
		t.Errorf("lost: the status is %v", err)
	}
}

func TestCredentialsThatCantWork(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Cookie", "cookie", "Cookie:", "a b", "Idempotency-Key", "Cookie:a=b"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken", name)
				}
			}()
			idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Credentials = []string{name} })
		}()
	}
}
