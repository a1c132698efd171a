package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// faulty is a path to a server on which every possible fault happens.
type faulty struct {
	server http.RoundTripper

	mu     sync.Mutex
	rnd    *rand.Rand
	counts map[string]int
	late   sync.WaitGroup    // deliveries that the client doesn't wait for
	tries  map[string][]span // by key
}

// span is one attempt from the client's view.
type span struct {
	from, to time.Time
	asked    time.Duration // Retry-After
}

func (f *faulty) RoundTrip(req *http.Request) (*http.Response, error) {
	s := span{from: time.Now()}
	resp, err := f.deliver(req)
	if s.to = time.Now(); err == nil {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		s.asked = time.Duration(seconds) * time.Second
	}
	key := req.Header.Get(keyHeader)
	f.mu.Lock()
	f.tries[key] = append(f.tries[key], s)
	f.mu.Unlock()
	return resp, err
}

func (f *faulty) deliver(req *http.Request) (*http.Response, error) {
	switch fault := f.pick(); fault {
	case "dropped before":
		return lost(req, io.EOF)
	case "refused":
		return lost(req, errRefused)
	case "409 before", "429 before", "502 before", "503 before":
		code, _ := strconv.Atoi(fault[:3])
		_, _ = lost(req, nil)
		return answer(code, "Retry-After", "1")(req)
	case "dropped after":
		resp, err := f.server.RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		return nil, errReset
	case "502 after":
		resp, err := f.server.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		return answer(502)(req)
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
		return lost(req, errReset)
	case "twice": // the network delivers two copies at once
		f.again(req, 0)
	}
	return f.server.RoundTrip(req)
}

// lost is a request that doesn't arrive.
func lost(req *http.Request, err error) (*http.Response, error) {
	_ = req.Body.Close()
	return nil, err
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
		"dropped before", "refused", "409 before", "429 before", "502 before", "503 before", "dropped after", "502 after", "torn after",
		"late", "twice",
	}
	fault := ""
	if f.number(10) < 6 {
		fault = faults[f.number(len(faults))]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[fault]++
	return fault
}

// shop is a handler that counts its orders and takes some time.
type shop struct {
	mu   sync.Mutex
	done map[string]int
	keys map[string]bool
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	time.Sleep(time.Duration(len(body)%7) * 200 * time.Millisecond) //nolint:forbidigo // virtual
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[string(body)]++
	s.keys[r.Header.Get(keyHeader)] = true
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "%s is order %d", body, len(s.done))
}

// 10,000 operations over net/http on both sides, through drops before and after
// the server acted, 409s, 429s, 502s, 503s, resets at any point, torn, late and
// doubled deliveries: each operation is carried out exactly once, its own answer
// returns, and every wait follows the formula.
func TestEachOperationExactlyOnce(t *testing.T) {
	t.Parallel()
	const operations, workers = 10_000, 100
	synctest.Test(t, func(t *testing.T) {
		orders := &shop{done: map[string]int{}, keys: map[string]bool{}}
		f := &faulty{rnd: rand.New(rand.NewPCG(1, 2)), counts: map[string]int{}, tries: map[string][]span{}}
		network, wire := serve(t, idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(orders), func() int { return max(f.number(16_000)-8_000, 0) })
		f.server = network
		c := &counts{}
		hc := &http.Client{Transport: client.New(f, func(o *client.Options) {
			o.MaxRetries, o.NoBudget, o.Hooks = 100, true, c.hooks()
		})}
		answers := make([]string, operations)
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := w; i < operations; i += workers {
					name := fmt.Sprint("operation ", i)
					answers[i] = order(t, hc, name)
					if !strings.HasPrefix(answers[i], name+" is order ") {
						t.Errorf("%s: answered %q", name, answers[i])
					}
				}
			})
		}
		wg.Wait()
		f.late.Wait()

		for name, n := range orders.done {
			if n != 1 {
				t.Errorf("%s was carried out %d times", name, n)
			}
		}
		unique := map[string]bool{}
		for _, a := range answers {
			_, number, _ := strings.Cut(a, " is ")
			unique[number] = true
		}
		if len(orders.done) != operations || len(orders.keys) != operations || len(f.tries) != operations || len(unique) != operations {
			t.Errorf("%d operations, %d keys, %d seen, %d answers; want %d", len(orders.done), len(orders.keys), len(f.tries), len(unique), operations)
		}
		waits := checkWaits(t, f.tries)
		for fault, n := range f.counts { // so that this test can fail
			if n < 100 {
				t.Errorf("fault %q happened %d times only", fault, n)
			}
		}
		if c.of("replayed") < 1000 || c.of("gave up retries") != 0 || waits != c.of("retry") || wire.dialed < 500 {
			t.Errorf("%d replays, %d waits for %d retries, %d connections", c.of("replayed"), waits, c.of("retry"), wire.dialed)
		}
		t.Logf("faults %v; %d attempts, %d retries, %d replays, %d connections", f.counts, c.of("attempt"), waits, c.of("replayed"), wire.dialed)
	})
}

// order sends an order and returns the answer.
func order(t *testing.T, hc *http.Client, name string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.test/orders", strings.NewReader(name))
	if err != nil {
		t.Error(err)
		return ""
	}
	resp, err := hc.Do(req)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return ""
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusCreated {
		t.Errorf("%s: status %d, %v", name, resp.StatusCode, err)
	}
	return string(body)
}

// checkWaits compares all waits between attempts with R93's formula and the
// server's Retry-After, and returns the number of waits.
func checkWaits(t *testing.T, tries map[string][]span) (waits int) {
	t.Helper()
	const initial, most = 500 * time.Millisecond, 5 * time.Second
	for key, spans := range tries {
		for i, s := range spans[1:] {
			before := spans[i]
			sleep := min(initial<<i, most)
			low, high := max(sleep/2, initial), max(sleep, initial)
			if before.asked > 0 {
				low, high = max(low, before.asked), max(high, before.asked+initial)
			}
			if got := s.from.Sub(before.to); got < low || got > high {
				t.Errorf("%s: wait %d is %v, want %v to %v", key, i+1, got, low, high)
			}
			waits++
		}
	}
	return waits
}
