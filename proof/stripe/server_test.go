package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// server is an API under a preset, and what stands before it.
type server struct {
	*httptest.Server

	mu    sync.Mutex
	runs  map[string]int       // of the handler, by key
	seen  map[string][]request // what came, by key
	news  *sync.Cond           // in seen
	ids   int
	began chan struct{} // a handler runs, and waits
	ends  chan struct{}
}

// request is one that came, and the status it was answered with.
type request struct {
	method, path, key string
	status            int
	id                string
}

func newServer(t *testing.T, preset func(*idem.Options)) *server {
	t.Helper()
	s := &server{runs: map[string]int{}, seen: map[string][]request{}, began: make(chan struct{}), ends: make(chan struct{})}
	s.news = sync.NewCond(&s.mu)
	engine := idem.New(&idem.MemoryStore{}, callertest.ByToken, preset, func(o *idem.Options) {
		// So that a client that obeys Retry-After doesn't wait long.
		o.Lease, o.LeaseMargin = 4*time.Second, time.Second
		o.Logger = slog.New(slog.DiscardHandler)
	})
	s.Server = httptest.NewServer(s.front(engine.Middleware(http.HandlerFunc(s.handle))))
	t.Cleanup(s.Close)
	return s
}

// front gives every request an id, as Stripe does, notes it, and loses the
// answers that a client is not to hear.
func (s *server) front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		s.mu.Lock()
		s.ids++
		id := fmt.Sprintf("req_%d", s.ids)
		s.mu.Unlock()
		rec.Header().Set("Request-Id", id)
		next.ServeHTTP(rec, r)
		key := r.Header.Get("Idempotency-Key")
		s.mu.Lock()
		s.seen[key] = append(s.seen[key], request{r.Method, r.URL.Path, key, rec.Code, id})
		n := len(s.seen[key])
		s.mu.Unlock()
		s.news.Broadcast()
		if rec.Header().Get("Test-Lose") != "" && n == 1 {
			panic(http.ErrAbortHandler) // the connection is closed
		}
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// awaits waits until n requests with a key are answered.
func (s *server) awaits(key string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.seen[key]) < n {
		s.news.Wait()
	}
}

var errOutage = errors.New("the provider is down")

// handle does what the request's description says.
func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	s.runs[key]++
	n := s.runs[key]
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodDelete {
		fmt.Fprint(w, `{"id":"cus_1","object":"customer","deleted":true}`)
		return
	}
	amount, play := params(r)
	fails := func(status int, body string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":%s}`, body)
	}
	switch {
	case play == "lost":
		w.Header().Set("Test-Lose", "1")
	case play == "slow" && n == 1:
		s.began <- struct{}{}
		<-s.ends
	case play == "broken" && n == 1:
		fails(http.StatusInternalServerError, `{"type":"api_error","message":"broken"}`)
		return
	case play == "declined":
		fails(http.StatusPaymentRequired, `{"type":"card_error","code":"card_declined","message":"Your card was declined."}`)
		return
	case play == "limited" && n == 1:
		fails(http.StatusTooManyRequests, `{"type":"invalid_request_error","code":"rate_limit","message":"Too many requests."}`)
		return
	case amount == "1":
		fails(http.StatusBadRequest, `{"type":"invalid_request_error","code":"amount_too_small","message":"Amount must be at least 50 cents."}`)
		return
	case play == "stuck":
		_, err := idem.Foreign(r.Context(), "charged", func(context.Context, *idem.Tx) (int, error) { return 0, errOutage }, idem.NotIdempotent())
		fails(http.StatusInternalServerError, `{"type":"api_error","message":`+strconv.Quote(err.Error())+`}`)
		return
	}
	fmt.Fprintf(w, `{"id":"pi_%s_%d","object":"payment_intent","amount":%s}`, key, n, amount)
}

// params finds the parameters in v1's form or in v2's JSON.
func params(r *http.Request) (amount, play string) {
	if r.Header.Get("Content-Type") == "application/json" {
		var p struct {
			Amount      json.Number
			Description string
		}
		_ = json.NewDecoder(r.Body).Decode(&p)
		return p.Amount.String(), p.Description
	}
	return r.FormValue("amount"), r.FormValue("description")
}
