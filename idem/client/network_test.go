package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v85"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A real network with both versions of the protocol: TLS, and broken streams.
func TestOverTheNetwork(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			var orders, requests atomic.Int64
			inner := idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "order %d of %d bytes", orders.Add(1), len(body))
			}))
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch requests.Add(1) {
				case 1: // before the request is read
					panic(http.ErrAbortHandler)
				case 2: // after the order was carried out
					inner.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				case 3: // in the middle of the answer
					w.Header().Set("Content-Length", "100")
					_, _ = w.Write([]byte("order"))
					panic(http.ErrAbortHandler)
				}
				inner.ServeHTTP(w, r)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.EnableHTTP2 = proto == "HTTP/2.0"
			server.StartTLS()
			defer server.Close()

			hc := server.Client()
			hc.Transport = client.New(hc.Transport, fast, func(o *client.Options) { o.MaxRetries = 5 })
			resp, err := hc.Post(server.URL, "text/plain", onlyReader{strings.NewReader(string(filled(1 << 20)))})
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(body) != "order 1 of 1048576 bytes" || err != nil || resp.Header.Get(idem.ReplayedHeader) != "true" || resp.Proto != proto {
				t.Errorf("%q, %v, %s, %v", body, err, resp.Proto, resp.Header)
			}
			if orders.Load() != 1 || requests.Load() != 4 {
				t.Errorf("%d orders, %d requests", orders.Load(), requests.Load())
			}
		})
	}
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	// An untrusted certificate: one attempt, no retry.
	if e := failure(t, client.New(base, fast), requestTo(t, server.URL)); e.Attempts != 1 || e.GaveUp != "" || e.Unknown {
		t.Errorf("%+v, want one attempt that did nothing", e)
	}
	// No server is listening: certainly not carried out.
	server.Close()
	if e := failure(t, client.New(base, fast), requestTo(t, server.URL)); e.Attempts != 3 || e.Unknown {
		t.Errorf("%+v, want three attempts that did nothing", e)
	}
}

// Attempts share a connection and leave nothing behind.
func TestConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"answers in memory": 1000, "answers read to their end": 60_000, "answers read on": 100_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				network, wire := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if n++; n%2 == 1 {
						w.WriteHeader(http.StatusServiceUnavailable)
					}
					_, _ = w.Write(filled(size))
				}), nil)
				tr := client.New(network, client.MaxAnswer(50_000))
				for range 5 {
					if _, body, err := roundTrip(t, tr, requestTo(t, "http://api.test/")); err != nil || len(body) != size {
						t.Errorf("%d bytes, %v", len(body), err)
					}
				}
				if want := map[bool]int{true: 1, false: 6}[size < 64<<10]; n != 10 || wire.dialed != want {
					t.Errorf("%d requests on %d connections, want %d", n, wire.dialed, want)
				}
			})
		})
	}
}

// Each attempt waits for the server's 100 before it sends its body, and the caller's own
// trace hears of it.
func TestInformationalAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, codes := 0, ""
		network, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable) // without a request for the body
				return
			}
			_, _ = io.Copy(w, r.Body)
		}), nil)
		network.ExpectContinueTimeout = time.Hour
		req := requestTo(t, "http://api.test/")
		req.Header.Set("Expect", "100-continue")
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { codes += fmt.Sprint(code); return nil },
		}))
		if _, body, err := roundTrip(t, client.New(network), req); err != nil || body != "x" || codes != "100" || n != 2 {
			t.Errorf("%q, %v, %s after %d requests", body, err, codes, n)
		}
	})
}

func requestTo(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// post sends a POST through hc and reads its answer.
func post(t *testing.T, hc *http.Client, url string) *http.Response {
	t.Helper()
	resp, err := hc.Do(requestTo(t, url))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp
}

// stripeClient is stripe-go above hc.
func stripeClient(hc *http.Client, retries int64) *stripe.Client {
	return stripe.NewClient("sk_test", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		HTTPClient: hc, URL: stripe.String("http://api.test"), MaxNetworkRetries: &retries,
		EnableTelemetry: new(false), LeveledLogger: &stripe.LeveledLogger{},
	})))
}

// charge makes a charge of a card.
func charge(t *testing.T, sc *stripe.Client, card, key string) (*stripe.Charge, error) {
	t.Helper()
	params := &stripe.ChargeCreateParams{Amount: stripe.Int64(2000), Currency: stripe.String("usd")}
	if err := params.SetSource(card); err != nil {
		t.Fatal(err)
	}
	if key != "" {
		params.SetIdempotencyKey(key)
	}
	return sc.V1Charges.Create(t.Context(), params)
}

// charges is an API with Stripe's rules, whose every charge takes three seconds. plan says
// what goes wrong with its requests.
type charges struct {
	mu   sync.Mutex
	plan []string
	keys []string // of the requests
	made int
}

func (s *charges) serve(t *testing.T) *http.Transport {
	t.Helper()
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, idem.Stripe).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(3 * time.Second) //nolint:forbidigo // virtual
		s.mu.Lock()
		defer s.mu.Unlock()
		s.made++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"ch_%d"}`, s.made)
	}))
	network, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.keys = append(s.keys, r.Header.Get(keyHeader))
		fault := ""
		if len(s.plan) > 0 {
			fault, s.plan = s.plan[0], s.plan[1:]
		}
		s.mu.Unlock()
		switch fault {
		case "lost":
			engine.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case "rate limited":
			w.Header().Set("Stripe-Should-Retry", "true")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		engine.ServeHTTP(w, r)
	}), nil)
	return network
}

// The real stripe-go, with and without its own retries: it sends its own key for each
// call, and returns its own errors for Stripe's.
func TestUnderStripeGo(t *testing.T) {
	t.Parallel()
	for _, retries := range []int64{0, 2} {
		t.Run(fmt.Sprint("with retries of its own: ", retries), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &charges{plan: []string{"lost", "rate limited"}}
				sc := stripeClient(&http.Client{Transport: client.New(s.serve(t))}, retries)
				ch, err := charge(t, sc, "visa", "")
				if err != nil || ch.ID != "ch_1" || ch.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
					t.Fatalf("%+v, %v", ch, err)
				}
				if len(s.keys) != 3 || s.made != 1 || s.keys[1] != s.keys[0] || s.keys[2] != s.keys[0] || s.keys[0] == "" {
					t.Errorf("keys %q, %d charges", s.keys, s.made)
				}
				if ch, err = charge(t, sc, "visa", "mine"); err != nil || ch.ID != "ch_2" {
					t.Errorf("the next charge: %+v, %v, keys %q", ch, err, s.keys)
				}
				_, err = charge(t, sc, "amex", "mine")
				if e, ok := errors.AsType[*stripe.Error](err); !ok || e.Type != stripe.ErrorTypeIdempotency || len(s.keys) != 5 {
					t.Errorf("%v after %d requests, want an idempotency error at once", err, len(s.keys))
				}
			})
		})
	}
}

// The client gives up while the charge is in progress: 409 until the charge is made, then
// its answer.
func TestAgainstStripeInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := &counts{}, &charges{}
		resp := post(t, &http.Client{Transport: client.New(s.serve(t), func(o *client.Options) {
			o.AttemptTimeout, o.MaxRetries, o.Hooks = 2*time.Second, 5, c.hooks()
		})}, "http://api.test/")
		if resp.StatusCode != 200 || resp.Header.Get("Idempotent-Replayed") != "true" || c.of("retry timeout") != 1 || c.of("retry") < 2 || s.made != 1 {
			t.Errorf("%d, %v, %v, %d charges", resp.StatusCode, resp.Header, c.n, s.made)
		}
	})
}

// A client over its quota waits for as long as it is told, and comes back with its key;
// stripe-go above it, too, which by itself returns a 429 at once. The refusal left no record.
func TestQuotaIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, preset := range map[string]func(*idem.Options){"alone": func(*idem.Options) {}, "under stripe-go": idem.Stripe} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, ran, records := time.Now(), 0, &idem.MemoryStore{}
				var seen []string
				engine := idem.New(records, callertest.Anybody, preset, func(o *idem.Options) {
					o.Quota, o.Logger = quota.New(quota.Limits{PerMinute: 2, Burst: 1}), slog.New(slog.DiscardHandler)
				}).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					ran++
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"id":"ch_1"}`)
				}))
				keys := map[string]string{}
				network, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					key := r.Header.Get(keyHeader)
					if keys[key] == "" {
						keys[key] = fmt.Sprint("key ", len(keys)+1)
					}
					engine.ServeHTTP(w, r)
					seen = append(seen, fmt.Sprintf("%s after %v: %d records", keys[key], time.Since(begun).Round(time.Minute/2), len(records.Records())))
				}), nil)
				hc := &http.Client{Transport: client.New(network)}
				for range 2 {
					if name == "alone" {
						post(t, hc, "http://api.test/")
					} else if ch, err := charge(t, stripeClient(hc, 2), "visa", ""); err != nil || ch.ID != "ch_1" {
						t.Errorf("%+v, %v", ch, err)
					}
				}
				want := []string{"key 1 after 0s: 1 records", "key 2 after 0s: 1 records", "key 2 after 30s: 2 records"}
				if diff := cmp.Diff(want, seen); diff != "" || ran != 2 {
					t.Errorf("the handler ran %d times; requests (-want +got):\n%s", ran, diff)
				}
			})
		})
	}
}

// faulty is a path to a server on which every possible fault happens.
type faulty struct {
	server http.RoundTripper

	mu     sync.Mutex
	rnd    *rand.Rand
	counts map[string]int
	late   sync.WaitGroup // deliveries that the client doesn't wait for
}

func (f *faulty) RoundTrip(req *http.Request) (*http.Response, error) {
	lost := func(err error) (*http.Response, error) {
		_ = req.Body.Close()
		return nil, err
	}
	switch fault := f.pick(); fault {
	case "dropped before":
		return lost(io.EOF)
	case "refused":
		return lost(errRefused)
	case "409 before", "429 before", "503 before":
		code, _ := strconv.Atoi(fault[:3])
		_, _ = lost(nil)
		return answer(code, "Retry-After", "1")(req)
	case "dropped after", "502 after":
		resp, err := f.server.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if fault == "502 after" {
			return answer(502)(req)
		}
		return nil, errReset
	case "torn after":
		resp, err := f.server.RoundTrip(req)
		if err == nil {
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(io.LimitReader(resp.Body, 3), errReader{io.ErrUnexpectedEOF}), resp.Body}
		}
		return resp, err
	case "late": // still in flight, or running, when the next attempt arrives
		f.again(req, time.Duration(f.number(3000))*time.Millisecond)
		return lost(errReset)
	case "twice": // the network delivers two copies at once
		f.again(req, 0)
	}
	return f.server.RoundTrip(req)
}

// again delivers a copy of req later, like a separate process: no client waits
// for the answer or cancels the copy.
func (f *faulty) again(req *http.Request, after time.Duration) {
	copied := req.Clone(context.WithoutCancel(req.Context()))
	copied.Body, _ = req.GetBody()
	f.late.Go(func() {
		time.Sleep(after) //nolint:forbidigo // virtual
		if resp, err := f.server.RoundTrip(copied); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}

func (f *faulty) number(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rnd.IntN(n)
}

func (f *faulty) pick() string {
	faults := []string{
		"dropped before", "refused", "409 before", "429 before", "503 before", "dropped after", "502 after", "torn after", "late", "twice",
		"", "", "", "", "", "", "",
	}
	fault := faults[f.number(len(faults))]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[fault]++
	return fault
}

// Many operations over net/http on both sides, through drops before and after the server
// acted, refusals, resets at any point, torn, late and doubled deliveries: each operation is
// carried out exactly once, and its own answer returns.
func TestEachOperationExactlyOnce(t *testing.T) {
	t.Parallel()
	const operations, workers = 1500, 50
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		done, keys := map[string]int{}, map[string]bool{}
		shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			time.Sleep(time.Duration(len(body)%7) * 200 * time.Millisecond) //nolint:forbidigo // virtual
			mu.Lock()
			defer mu.Unlock()
			done[string(body)]++
			keys[r.Header.Get(keyHeader)] = true
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "%s is order %d", body, len(done))
		})
		f := &faulty{rnd: rand.New(rand.NewPCG(1, 2)), counts: map[string]int{}}
		f.server, _ = serve(t, idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(shop), func() int { return max(f.number(16_000)-8_000, 0) })
		hc := &http.Client{Transport: client.New(f, func(o *client.Options) { o.MaxRetries, o.NoBudget = 100, true })}
		answers := map[string]bool{}
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := w; i < operations; i += workers {
					name := fmt.Sprint("operation ", i)
					resp, err := hc.Post("http://api.test/orders", "text/plain", strings.NewReader(name))
					if err != nil {
						t.Errorf("%s: %v", name, err)
						continue
					}
					body, err := io.ReadAll(resp.Body)
					if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != 201 || !strings.HasPrefix(string(body), name+" is order ") {
						t.Errorf("%s: %d, %q, %v", name, resp.StatusCode, body, err)
					}
					mu.Lock()
					answers[strings.TrimPrefix(string(body), name)] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		f.late.Wait()
		for name, n := range done {
			if n != 1 {
				t.Errorf("%s was carried out %d times", name, n)
			}
		}
		if len(done) != operations || len(keys) != operations || len(answers) != operations {
			t.Errorf("%d operations, %d keys, %d answers; want %d", len(done), len(keys), len(answers), operations)
		}
		for fault, n := range f.counts { // so that this test can fail
			if n < 50 {
				t.Errorf("fault %q happened %d times only", fault, n)
			}
		}
	})
}
