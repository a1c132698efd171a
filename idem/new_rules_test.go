package idem_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// What is said about an operation is said after its record was looked at: today's rules are
// for new operations. Each row is a rule that a later release adds, or a retry that comes
// with less time than the first request. A known key gets its answer, or a 503 where the
// request can't be compared; only a new key hears the rule's advice.
func TestRecordFirst(t *testing.T) {
	t.Parallel()
	down := errors.New("no such form")
	refuses := func(o *idem.Options) {
		o.Fingerprint.Func = func(*idem.Request) ([]byte, error) { return nil, down }
	}
	named := func(name string) func(*idem.Options) {
		return func(o *idem.Options) {
			o.Fingerprint.FuncName, o.Fingerprint.Func = name, func(r *idem.Request) ([]byte, error) { return r.Body, nil }
		}
	}
	const soon = 300 * time.Millisecond // less than Options.Reserve
	refuse := func(why error) func(context.Context, *idem.Engine, idem.Request) idem.Response {
		return func(ctx context.Context, e *idem.Engine, r idem.Request) idem.Response {
			r.Body = nil
			return e.Refuse(ctx, r, why)
		}
	}
	for name, row := range map[string]struct {
		before, now func(*idem.Options)
		time        time.Duration // of the retry; 0 means plenty
		send        func(context.Context, *idem.Engine, idem.Request) idem.Response
		known, code string // of the known key: "201", or a problem's code; of a new key
		advice      string
	}{
		"MinKey":   {now: func(o *idem.Options) { o.MinKey = 22 }, code: "idempotency_key_invalid", advice: "22 to 255"},
		"OneScope": {now: func(o *idem.Options) { o.MinKey = 0 }, code: "idempotency_key_invalid", advice: "22 to 255"},
		"IETF":     {now: idem.IETF, code: "idempotency_key_invalid", advice: "quotes"},
		"Resumable": {
			now: func(o *idem.Options) { o.Function, o.Resumable, o.MaxRequest = "f", true, 2 }, code: "request_too_large", advice: "smaller",
		},
		"a fingerprint function of the same name": {
			before: named("v1"), now: func(o *idem.Options) { named("v1")(o); refuses(o) },
			known: "idempotency_incomparable", code: "request_invalid", advice: "Nothing was done",
		},
		"a fingerprint function of another name": {
			before: named("v1"), now: func(o *idem.Options) { named("v2")(o); refuses(o) },
			known: "idempotency_incomparable", code: "request_invalid", advice: "Nothing was done",
		},
		"a fingerprint function, and the former one": {
			now: func(o *idem.Options) {
				named("v2")(o)
				refuses(o)
				o.Fingerprint.Known = []idem.Fingerprint{{}}
			}, code: "request_invalid", advice: "Nothing was done",
		},
		"too little time": {time: soon, code: "no_time_left", advice: "Nothing was done"},
		"no time":         {time: time.Nanosecond, known: "no_time_left", code: "no_time_left", advice: "was not read"},
		"Resumable, net/http": {
			now: func(o *idem.Options) { o.Function, o.Resumable, o.MaxRequest = "f", true, 2 }, send: throughMiddleware, code: "request_too_large", advice: "smaller",
		},
		"MaxRequest": {now: func(o *idem.Options) { o.MaxRequest = 2 }, send: throughMiddleware, known: "idempotency_incomparable", code: "request_too_large", advice: "smaller"},
		"MaxRequest, with a key in the body": {
			now:  func(o *idem.Options) { o.MaxRequest, o.KeyFrom = 2, idem.FormKey("key") },
			send: throughMiddleware, known: "request_too_large", code: "request_too_large", advice: "was not read",
		},
		"an encoding":          {send: refuse(idem.ErrRequest), known: "idempotency_incomparable", code: "request_invalid", advice: "Nothing was done"},
		"an encoding, and why": {send: refuse(down), known: "idempotency_incomparable", code: "request_invalid", advice: "Nothing was done"},
		"a part that the body lacks": {now: func(o *idem.Options) {
			o.KeyFrom = func(r *idem.Request) (string, error) {
				r.Unread = idem.ErrRequest
				return r.Header.Get(idem.KeyHeader), nil
			}
		}, known: "idempotency_incomparable", code: "request_invalid", advice: "Nothing was done"},
		"a form": {now: func(o *idem.Options) {
			o.KeyFrom = func(*idem.Request) (string, error) { return "", idem.ErrRequest }
		}, known: "request_invalid", code: "request_invalid", advice: "was not read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var st idem.MemoryStore
				runs := 0
				send := func(change func(*idem.Options), key string, limit time.Duration, by func(context.Context, *idem.Engine, idem.Request) idem.Response) idem.Response {
					e := idem.New(&st, callertest.Anybody, func(o *idem.Options) {
						if o.Methods = []string{"POST"}; change != nil {
							change(o)
						}
					})
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					time.Sleep(limit / 1000) //nolint:forbidigo // virtual
					r := idem.Request{Method: "POST", Path: "/charges/7", Route: "POST /charges/{id}", Header: http.Header{idem.KeyHeader: {key}}, Body: []byte("100 euros")}
					if by != nil {
						return by(context.WithValue(ctx, ran{}, &runs), e, r)
					}
					res, err := e.Serve(ctx, r, func(context.Context) (idem.Response, error) {
						runs++
						return idem.Response{Status: 201}, nil
					})
					if err != nil {
						t.Fatal(err)
					}
					return res.Response
				}
				if resp := send(row.before, "order-7", time.Minute, nil); resp.Status != 201 || runs != 1 {
					t.Fatalf("the first request: %d, and %d runs", resp.Status, runs)
				}
				if row.time == 0 {
					row.time = time.Minute
				}
				if row.known == "" {
					row.known = "201"
				}
				retried := send(row.now, "order-7", row.time, row.send)
				if got := codeOf(retried); got != row.known || row.known != row.code && bytes.Contains(retried.Body, []byte("Nothing was done")) {
					t.Errorf("the retry: got %s, want %s: %s", got, row.known, retried.Body)
				}
				fresh := send(row.now, "order-8", row.time, row.send)
				if got := codeOf(fresh); got != row.code || !bytes.Contains(fresh.Body, []byte(row.advice)) {
					t.Errorf("a new key: got %s, want %s with %q: %s", got, row.code, row.advice, fresh.Body)
				}
				if n := len(st.Records()); n != 1 || runs != 1 {
					t.Errorf("%d records and %d runs, want 1 and 1", n, runs)
				}
			})
		})
	}
}

type ran struct{}

// throughMiddleware sends r through [idem.Engine.Middleware].
func throughMiddleware(ctx context.Context, e *idem.Engine, r idem.Request) idem.Response {
	w, req := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, r.Method, r.Path, bytes.NewReader(r.Body))
	req.Header = r.Header
	e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*ctx.Value(ran{}).(*int)++
		w.WriteHeader(201)
	})).ServeHTTP(w, req)
	return idem.Response{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}
}

// codeOf returns an answer's code in a problem, or its status.
func codeOf(r idem.Response) string {
	_, code, found := strings.Cut(string(r.Body), `"code":"`)
	if code, _, _ = strings.Cut(code, `"`); found {
		return code
	}
	return "201"
}

// A request that may begin no operation begins none after it has waited, either.
func TestRefusedAfterAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var st idem.MemoryStore
		r := idem.Request{Method: "POST", Path: "/charges", Header: http.Header{idem.KeyHeader: {"k"}}}
		later := idem.New(&st, callertest.Anybody, func(o *idem.Options) { o.MinKey, o.InFlight = 22, idem.InFlightWait })
		heard := make(chan string)
		_, err := idem.New(&st, callertest.Anybody).Serve(t.Context(), r, func(context.Context) (idem.Response, error) {
			go func() {
				res, _ := later.Serve(t.Context(), r, answers(201))
				heard <- codeOf(res.Response)
			}()
			time.Sleep(time.Second)                    //nolint:forbidigo // virtual
			return idem.Response{}, errors.New("down") // frees the key
		})
		if got := <-heard; err != nil || got != "idempotency_key_invalid" {
			t.Errorf("got %s, %v, want idempotency_key_invalid", got, err)
		}
	})
}
