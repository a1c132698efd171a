package lambda_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// The scenarios in the life of a key: new, replayed,
// refused, failed, expired, each through every form of event.

func TestA01NewRequest(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		store := &watched{}
		h, runs := counted(created)
		a := s.send(t, s.wrap(idem.New(store, callertest.Anybody), h), newCall("k"))
		a.accepted(t, 201, createdBody, false)
		if a.value("Location") != "/rides/1" || a.value("Content-Type") != "application/json" {
			t.Errorf("the handler's headers came out as %v", a.header)
		}
		if ends, err := http.ParseTime(a.value("Idempotency-Expires")); a.value("Idempotency-Key") != "k" || err != nil || time.Until(ends) < 23*time.Hour {
			t.Errorf("the key or its lifetime isn't told: %v", a.header)
		}
		ran(t, runs, 1)
		if c, f := store.claims.Load(), store.commits.Load(); c != 1 || f != 1 {
			t.Errorf("%d claims and %d commits, want one of each", c, f)
		}
	})
}

func TestA02SameRequestAgain(t *testing.T) {
	t.Parallel()
	body := "{\"a\": \"ü\u2028<&>\"}\r\n\x00\t" // JSON must not touch it on its way
	each(t, sources, func(t *testing.T, s source) {
		h, runs := counted(func(context.Context, []byte) (idem.Response, error) {
			return idem.Response{Status: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, nil
		})
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
		for i := range 3 {
			s.send(t, wrapped, newCall("k")).accepted(t, 201, body, i > 0)
		}
		ran(t, runs, 1)
	})
}

func TestA03SameKeyOtherRequest(t *testing.T) {
	t.Parallel()
	for name, contract := range map[string]struct {
		preset          func(*idem.Options)
		status          int
		content, answer string
	}{
		"IETF":   {idem.IETF, 422, "application/problem+json", `"title":"Idempotency-Key is already used"`},
		"Stripe": {idem.Stripe, 400, "application/json", `"type":"idempotency_error"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, sources, func(t *testing.T, s source) {
				h, runs := counted(created)
				wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, contract.preset), h)
				s.send(t, wrapped, newCall(`"k"`)).accepted(t, 201, createdBody, false)
				changed := newCall(`"k"`)
				changed.body = []byte(`{"origin_lat":1}`)
				a := s.send(t, wrapped, changed)
				if a.status != contract.status || a.value("Content-Type") != contract.content || !strings.Contains(string(a.body), contract.answer) {
					t.Errorf("got %d %v %s", a.status, a.header, a.body)
				}
				if bytes.Contains(a.body, []byte("made")) || a.value("Location") != "" || a.value(idem.ReplayedHeader) != "" {
					t.Errorf("the stored answer leaks: %v %s", a.header, a.body)
				}
				s.send(t, wrapped, newCall(`"k"`)).accepted(t, 201, createdBody, true)
				ran(t, runs, 1)
			})
		})
	}
}

func TestA04SameKeyOtherRoute(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for _, byRoute := range []bool{false, true} {
			h, runs := counted(created)
			wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.ScopeRoute = byRoute }), h)
			// Each route as its gateway names it; the ones without names go by the path.
			tips := editedSource(s, func(ev map[string]any) {
				if _, ok := ev["resource"]; ok {
					ev["resource"] = "/tips"
				}
				if ev["routeKey"] == "POST /rides" {
					ev["routeKey"] = "POST /tips"
				}
			})
			other := newCall("k")
			other.path = "/tips"
			s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, false)
			if a := tips.send(t, wrapped, other); byRoute {
				a.accepted(t, 201, createdBody, false)
				ran(t, runs, 2)
			} else {
				a.refused(t, 422, "idempotency_key_mismatch")
				ran(t, runs, 1)
			}
			s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, true)
		}
	})
}

func TestA11DeclinedCard(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		const declined = `{"error":"Your card was declined."}`
		h, pay := counted(func(context.Context, []byte) (idem.Response, error) {
			return idem.Response{Status: http.StatusPaymentRequired, Body: []byte(declined)}, nil
		})
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
		s.send(t, wrapped, newCall("k")).accepted(t, 402, declined, false)
		s.send(t, wrapped, newCall("k")).accepted(t, 402, declined, true)
		ran(t, pay, 1)
	})
}

func TestA12ProviderDown(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		rides, calls := 0, 0
		h := func(ctx context.Context, body []byte) (idem.Response, error) {
			if _, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (bool, error) {
				rides++
				return true, nil
			}); err != nil {
				return idem.Response{}, err
			}
			if _, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (bool, error) {
				if calls++; calls <= 2 {
					return false, errors.New("503: secret")
				}
				return true, nil
			}); err != nil {
				return idem.Response{}, err
			}
			return created(ctx, body)
		}
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
		for range 2 {
			a := s.send(t, wrapped, newCall("k"))
			a.refused(t, 500, "internal_error")
			if !strings.Contains(string(a.body), "Retry with the same key") || strings.Contains(string(a.body), "secret") {
				t.Errorf("the answer says %s", a.body)
			}
		}
		s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, false)
		s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, true)
		if rides != 1 || calls != 3 {
			t.Errorf("%d rides and %d calls, want 1 and 3", rides, calls)
		}
	})
}

func TestA13ServerErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		preset func(*idem.Options)
		again  int // status of the retry
		runs   int64
	}{"v1": {idem.StripeV1, 500, 1}, "v2": {idem.Stripe, 201, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, sources, func(t *testing.T, s source) {
				broken := true
				h, runs := counted(func(context.Context, []byte) (idem.Response, error) {
					if broken {
						return idem.Response{Status: 500, Body: []byte("a")}, nil
					}
					return idem.Response{Status: 201, Body: []byte("a")}, nil
				})
				wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, tc.preset), h)
				s.send(t, wrapped, newCall("k")).accepted(t, 500, "a", false)
				broken = false
				s.send(t, wrapped, newCall("k")).accepted(t, tc.again, "a", tc.again == 500)
				ran(t, runs, tc.runs)
			})
		})
	}
}

func TestA17Expired(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for name, tombstone := range map[string]time.Duration{"new": 0, "told": 72 * time.Hour} {
			t.Run(name, func(t *testing.T) {
				now := time.Now()
				h, runs := counted(created)
				wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
					o.Tombstone, o.Now = tombstone, func() time.Time { return now }
				}), h)
				s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, false)
				now = now.Add(defaults.Retention + 2*time.Second) // nobody has deleted the record
				late := s.send(t, wrapped, newCall("k"))
				if tombstone == 0 {
					late.accepted(t, 201, createdBody, false)
					ran(t, runs, 2)
					return
				}
				late.refused(t, 410, "idempotency_key_expired")
				ran(t, runs, 1)
			})
		}
	})
}

func TestA29Observe(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		var mu sync.Mutex
		var log bytes.Buffer
		var would []error
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
			o.Mode, o.Logger = idem.ModeObserve, slog.New(slog.NewTextHandler(&log, nil))
			o.Hooks.Observed = func(_ context.Context, ev idem.Event) {
				mu.Lock()
				defer mu.Unlock()
				would = append(would, ev.Err)
			}
		})
		h, runs := counted(created)
		wrapped := s.wrap(e, h)
		without, changed := newCall(""), newCall("k")
		delete(without.header, "Idempotency-Key")
		changed.body = []byte("another")
		for i, c := range []call{newCall("k"), newCall("k"), changed, without, newCall("no good")} {
			a := s.send(t, wrapped, c)
			a.accepted(t, 201, "made: "+string(c.body), false)
			if a.value("Idempotency-Key") != "" || a.value("Idempotency-Expires") != "" {
				t.Errorf("answer %d tells of a key that nothing is done with: %v", i+1, a.header)
			}
			ran(t, runs, int64(i+1))
		}
		want := []error{idem.ErrReplay, idem.ErrMismatch, idem.ErrKeyMissing, idem.ErrKeyInvalid}
		if len(would) != len(want) {
			t.Fatalf("counted %v, want %v", would, want)
		}
		for i := range want {
			if !errors.Is(would[i], want[i]) {
				t.Errorf("request %d would have been %v, want %v", i+2, would[i], want[i])
			}
		}
		if n := strings.Count(log.String(), "observed"); n != len(want) {
			t.Errorf("%d lines in the log, want %d:\n%s", n, len(want), &log)
		}
	})
}

func TestA32SecretsAreNotReplayed(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		kept := map[string]string{"Content-Type": "text/csv", "Location": "/rides/7", "X-Ride-Id": "7"}
		secrets := map[string]string{
			"Set-Cookie": "session=secret", "Authorization": "Bearer secret", "Www-Authenticate": "secret", "X-Amzn-Remapped-Authorization": "secret",
			"X-Session-Token": "secret",
		}
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.StoreHeaders = []string{"x-ride-id"} }),
			func(context.Context, []byte) (idem.Response, error) {
				r := idem.Response{Status: 201, Header: http.Header{}}
				for _, m := range []map[string]string{kept, secrets} {
					for name, value := range m {
						r.Header.Set(name, value)
					}
				}
				return r, nil
			})
		for i := range 2 {
			a := s.send(t, wrapped, newCall("k"))
			a.accepted(t, 201, "", i == 1)
			for name, value := range kept {
				if got := a.value(name); got != value {
					t.Errorf("answer %d: %s is %q, want %q", i+1, name, got, value)
				}
			}
			for name, value := range secrets {
				if i == 1 {
					value = ""
				}
				if got := a.value(name); got != value {
					t.Errorf("answer %d: %s is %q, want %q", i+1, name, got, value)
				}
			}
		}
	})
}
