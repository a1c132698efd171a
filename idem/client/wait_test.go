package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// waits returns the times between the attempts.
func (s *script) waits() []time.Duration {
	var waits []time.Duration
	seen := s.attempts()
	for i := range seen[1:] {
		waits = append(waits, seen[i+1].At.Sub(seen[i].At))
	}
	return waits
}

// Each wait is a random time between half and all of an exponential delay, at least the
// first delay, and never beyond the longest.
func TestWaitsGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var early, lateOnes int
		for range 300 {
			s := &script{steps: []step{failing(errReset)}}
			_ = outcome(t, s, request(t, "POST", "x"), func(o *client.Options) { o.MaxRetries, o.NoBudget = 6, true })
			for i, wait := range s.waits() {
				sleep := min(500*time.Millisecond<<i, 5*time.Second)
				if least := max(sleep/2, 500*time.Millisecond); wait < least || wait > sleep {
					t.Errorf("wait %d is %v, want %v to %v", i+1, wait, least, sleep)
				}
			}
			switch wait := s.waits()[3]; { // 2 s to 4 s
			case wait < 2500*time.Millisecond:
				early++
			case wait > 3500*time.Millisecond:
				lateOnes++
			}
		}
		if early < 40 || lateOnes < 40 {
			t.Errorf("%d of 300 waits in the lowest quarter, %d in the highest", early, lateOnes)
		}
		const year = 365 * 24 * time.Hour
		s := &script{steps: []step{failing(errReset)}}
		_ = outcome(t, s, request(t, "PUT", "x"), func(o *client.Options) { o.MaxRetries, o.NoBudget, o.MaxDelay = 70, true, year })
		if last := s.waits()[69]; len(s.waits()) != 70 || last < year/2 || last > year {
			t.Errorf("the last of %d waits is %v, want at most a year", len(s.waits()), last)
		}
	})
}

// Clients that are told the same Retry-After don't come back at the same moment.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value, date string
		least       time.Duration // or the answer is returned at once
		gaveUp      bool
	}{
		"seconds":                        {value: "7", least: 7 * time.Second},
		"spaces":                         {value: " 7 ", least: 7 * time.Second},
		"the longest":                    {value: "60", least: time.Minute},
		"too long":                       {value: "61", gaveUp: true},
		"overflow of a duration":         {value: "9223372037", gaveUp: true},
		"overflow":                       {value: "461168601842738790400", gaveUp: true},
		"date":                           {value: at(30), least: 30 * time.Second},
		"date too far":                   {value: at(90), gaveUp: true},
		"date by the server's own clock": {value: at(-3570), date: at(-3600), least: 30 * time.Second},
		"date in the past":               {value: at(-30)},
		"negative":                       {value: "-1"},
		"nonsense":                       {value: "soon"},
		"fraction":                       {value: "1.5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := map[time.Duration]bool{}
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					want := map[bool]string{false: "2 200", true: "1 429 retry-after"}[tt.gaveUp]
					s := &script{steps: []step{answer(429, "Retry-After", tt.value, "Date", tt.date), answer(200)}}
					if got := outcome(t, s, request(t, "POST", "x")); got != want {
						t.Errorf("%s, want %s", got, want)
					}
					for _, wait := range s.waits() {
						waits[wait] = true
						if least := max(tt.least, 500*time.Millisecond); wait < least || wait > tt.least+500*time.Millisecond {
							t.Errorf("waited %v, want %v and up to half a second", wait, least)
						}
					}
				})
			}
			if tt.least > 0 && len(waits) < 15 {
				t.Errorf("%d different waits of 20", len(waits))
			}
		})
	}
}

// A client that is less patient than the handler is slow gets the answer soon
// after the handler has finished, and not only at the end of its lease.
func TestRequestInFlightIsAskedForSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		engine := idem.New(&idem.MemoryStore{}, callertest.Anybody)
		network, _ := serve(t, engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			runs++
			time.Sleep(2 * time.Second) //nolint:forbidigo // virtual
			w.WriteHeader(http.StatusCreated)
		})), nil)
		hc := &http.Client{Transport: client.New(network, func(o *client.Options) { o.AttemptTimeout = time.Second })}
		begun := time.Now()
		resp := post(t, hc, "http://api.test/")
		if took := time.Since(begun); resp.StatusCode != http.StatusCreated || took > 10*time.Second || runs != 1 {
			t.Errorf("%d after %v and %d runs, want 201 after a few seconds", resp.StatusCode, took, runs)
		}
	})
}

// The holder of the key may have died: the client waits for the end of its lease, however
// often the server asks for a retry, but in total not longer than MaxRetryAfter. These
// waits are no retries.
func TestRequestInFlightIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method string
		lease  time.Duration
		after  string // Retry-After
		want   string
		least  time.Duration
		most   time.Duration
	}{
		"until the lease is over":    {"POST", 32 * time.Second, "5", "", 32 * time.Second, 45 * time.Second},
		"a long lease is given up":   {"POST", time.Hour, "5", "409 retries outcome-unknown", time.Minute, 90 * time.Second},
		"nothing is asked of us":     {"POST", time.Hour, "", "3 409 retries outcome-unknown", 0, 10 * time.Second},
		"nonsense is asked of us":    {"POST", time.Hour, "soon", "3 409 retries outcome-unknown", 0, 10 * time.Second},
		"more is asked than we wait": {"POST", time.Hour, "61", "1 409 retry-after outcome-unknown", 0, 0},
		"without a key":              {"PUT", time.Hour, "5", "3 409 retries", 10 * time.Second, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
					if time.Since(begun) > tt.lease {
						return answer(201)(req)
					}
					return answer(409, "Retry-After", tt.after)(req)
				}}}
				got := outcome(t, s, request(t, tt.method, "x"))
				if took := time.Since(begun); !strings.HasSuffix(got, tt.want) || took < tt.least || took > tt.most {
					t.Errorf("%s after %v, want %s after %v to %v", got, took, tt.want, tt.least, tt.most)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // waited 30 s, 30 s, retried, gave up
		s := &script{steps: []step{answer(409, "Retry-After", "30")}}
		got := outcome(t, s, request(t, "POST", "x"), func(o *client.Options) { o.InitialDelay, o.MaxDelay, o.MaxRetries = 1, 1, 1 })
		if want := "4 409 retries outcome-unknown"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// Whatever the waits, no attempt follows the end of the lifetime.
func TestNoAttemptAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, life := range []time.Duration{3 * time.Second, time.Minute, 10 * time.Minute} {
			s := &script{steps: []step{failing(errReset)}}
			got := outcome(t, s, request(t, "POST", "x"), func(o *client.Options) { o.KeyLifetime, o.MaxRetries, o.NoBudget = life, 1000, true })
			seen := s.attempts()
			if last := seen[len(seen)-1].At.Sub(seen[0].At); last > life || !strings.HasSuffix(got, "error lifetime unknown") || len(seen) < 2 {
				t.Errorf("lifetime %v: %s, the last attempt after %v", life, got, last)
			}
		}
	})
}

// When all requests fail, retries stay a fraction of the requests. Quiet times save up ten
// seconds' worth.
func TestBudgetStopsStorms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{answer(503)}}
		tr := client.New(s, client.PerSecond(1))
		storm := func(requests, least, most int) {
			t.Helper()
			begun, before := time.Now(), len(s.attempts())
			for range requests {
				status(t, tr, request(t, "POST", "x"))
			}
			retries := len(s.attempts()) - before - requests
			if most += int(time.Since(begun).Seconds()) + 1; retries < least || retries > most {
				t.Errorf("%d retries of %d requests, want %d to %d", retries, requests, least, most)
			}
		}
		storm(1000, 100, 110)
		time.Sleep(time.Hour) //nolint:forbidigo // virtual
		storm(20, 10, 12)

		for want, opt := range map[string]func(*client.Options){
			"2 503 budget outcome-unknown":   func(o *client.Options) { client.PerSecond(0.001)(o); o.MaxRetries = 5 }, // one at least
			"21 503 budget outcome-unknown":  func(o *client.Options) { client.PerSecond(2)(o); o.MaxRetries, o.InitialDelay, o.MaxDelay = 100, 1, 1 },
			"41 503 retries outcome-unknown": func(o *client.Options) { o.MaxRetries, o.NoBudget = 40, true },
		} {
			if got := outcome(t, &script{steps: s.steps}, request(t, "POST", "x"), opt); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

func TestAttemptTimeout(t *testing.T) {
	t.Parallel()
	then := func(do step) step { // an outcome that comes too late
		return func(req *http.Request) (*http.Response, error) {
			_, _ = hanging(req)
			return do(req)
		}
	}
	for name, tt := range map[string]struct {
		method string
		first  step
	}{
		"no headers in time":               {"POST", hanging},
		"a keyed answer whose body hangs":  {"POST", hangingBody(200)},
		"the base says cancelled":          {"GET", then(failing(context.Canceled))},
		"the base says something else":     {"POST", then(failing(errReset))},
		"an answer that comes too late":    {"POST", then(answer(400))},
		"one too late, to a request's GET": {"GET", then(answer(400))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &counts{}
				start := time.Now()
				got := outcome(t, &script{steps: []step{tt.first, answer(200)}}, request(t, tt.method, "x"), timeout, func(o *client.Options) { o.Hooks = c.hooks() })
				if took := time.Since(start); got != "2 200" || c.of("retry timeout") != 1 || took != 3500*time.Millisecond {
					t.Errorf("%s after %v, %v; want 2 200 after 3.5 s", got, took, c.n)
				}
				e := failure(t, client.New(&script{steps: []step{tt.first}}, timeout, never), request(t, tt.method, "x"))
				if !errors.Is(e, os.ErrDeadlineExceeded) || !e.Timeout() || !strings.HasPrefix(e.Error(), "client: gave up after attempt 1 (retries): attempt timed out: i/o timeout") ||
					strings.Count(e.Error(), "i/o timeout") != 1 {
					t.Errorf("%v, want a timeout", e)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // without a key it ends with the headers
		s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
			resp, err := answer(200)(req)
			resp.Body = io.NopCloser(io.MultiReader(readerFunc(func([]byte) (int, error) {
				select {
				case <-time.After(time.Hour):
					return 0, io.EOF
				case <-req.Context().Done():
					return 0, context.Cause(req.Context())
				}
			}), strings.NewReader("late")))
			return resp, err
		}}}
		if _, body, err := roundTrip(t, client.New(s, timeout), request(t, "GET", "")); body != "late" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	})
}

func TestContext(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		steps   []step
		timeout time.Duration
		want    string
		is      []error
		took    time.Duration
	}{
		"ended before":                {[]step{answer(200)}, 0, "0 error", []error{context.DeadlineExceeded}, 0},
		"ends during an attempt":      {[]step{hanging}, time.Minute, "1 error unknown", []error{context.DeadlineExceeded}, time.Minute},
		"the base tells another":      {[]step{resetAfter}, time.Minute, "1 error unknown", []error{context.DeadlineExceeded, errReset}, time.Minute},
		"would end during the wait":   {[]step{answer(503, "Retry-After", "10")}, 9 * time.Second, "1 503 deadline outcome-unknown", nil, 0},
		"would end before a new try":  {[]step{failing(errReset)}, 400 * time.Millisecond, "1 error deadline unknown", []error{errReset}, 0},
		"ends after the wait, in one": {[]step{answer(503), hanging}, time.Minute, "2 error unknown", []error{context.DeadlineExceeded}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer cancel()
				start := time.Now()
				s := &script{steps: tt.steps}
				if got := outcome(t, s, request(t, "POST", "x").WithContext(ctx)); got != tt.want || time.Since(start) != tt.took {
					t.Errorf("%s after %v, want %s after %v", got, time.Since(start), tt.want, tt.took)
				}
				for _, want := range tt.is {
					ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
					defer cancel()
					req := request(t, "POST", "x").WithContext(ctx)
					req.Header.Set(keyHeader, "mine")
					e := failure(t, client.New(&script{steps: tt.steps}), req)
					if e.Key != "mine" || !e.Unknown {
						t.Errorf("the caller's key: %+v, want unknown, with the key", e)
					}
					if !errors.Is(e, want) || strings.Count(e.Error(), "deadline exceeded") > 1 {
						t.Errorf("%v, want %v, once", e, want)
					}
				}
			})
		})
	}
}

func resetAfter(req *http.Request) (*http.Response, error) {
	_, _ = hanging(req)
	return nil, errReset
}

// Who cancels a wait gets the reason for it and the key.
func TestWaitIsCancelled(t *testing.T) {
	t.Parallel()
	for name, cancelled := range map[string]func(*http.Request) (*http.Request, func()){
		"context": func(req *http.Request) (*http.Request, func()) {
			ctx, cancel := context.WithCancel(req.Context())
			return req.WithContext(ctx), cancel
		},
		"Request.Cancel": func(req *http.Request) (*http.Request, func()) {
			done := make(chan struct{})
			req.Cancel = done //nolint:staticcheck // deprecated, but http.Client uses it
			return req, func() { close(done) }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{answer(503, "Retry-After", "30")}}
			req, cancel := cancelled(request(t, "POST", "x"))
			time.AfterFunc(7*time.Second, cancel)
			start := time.Now()
			e := failure(t, client.New(s), req)
			if !errors.Is(e, context.Canceled) || time.Since(start) != 7*time.Second || len(s.attempts()) != 1 ||
				!strings.Contains(e.Error(), "status 503") || e.Key != s.attempts()[0].Key || !e.Unknown || e.GaveUp != "" {
				t.Errorf("%s: %+v after %v and %d attempts", name, e, time.Since(start), len(s.attempts()))
			}
			s.allClosed(t)
		})
	}
	// http.Client's own timeout covers all attempts.
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{answer(503), hanging}}
		start := time.Now()
		_, err := (&http.Client{Transport: client.New(s), Timeout: 5 * time.Second}).Post("https://api.test/", "", strings.NewReader("x"))
		if timeout, ok := errors.AsType[*url.Error](err); !ok || !timeout.Timeout() || len(s.attempts()) != 2 || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// An attempt's context ends with its answer's body, or with its error.
func TestAttemptsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*http.Response){
		"read":   func(r *http.Response) { _, _ = io.ReadAll(r.Body) },
		"closed": func(r *http.Response) { _ = r.Body.Close() },
		"error":  nil,
	} {
		var ctx context.Context
		s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
			if ctx = req.Context(); end == nil {
				return nil, errReset
			}
			return answer(200)(req)
		}}}
		resp, err := client.New(s, never).RoundTrip(request(t, "GET", ""))
		if end != nil {
			if err != nil || ctx.Err() != nil {
				t.Fatalf("%s: %v, %v before", name, err, ctx.Err())
			}
			end(resp)
			_ = resp.Body.Close()
		}
		if ctx.Err() == nil {
			t.Errorf("%s: the attempt goes on", name)
		}
	}
}
