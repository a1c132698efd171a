package checktest

import (
	"context"
	"net/http"
	"strings"
	"sync"
)

// Race makes requests with the same key overlap if the key ends in "-concurrent", as in
// the check "concurrent". The handler of such a request waits until N requests with the
// key, including this request, have begun to wait or have been answered.
type Race struct {
	N int

	mu      sync.Mutex
	changed chan struct{}
	there   map[string]int
}

// Outside wraps the handler next, and counts the requests that next has answered.
func (r *Race) Outside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		next.ServeHTTP(w, req)
		r.arrived(strings.Trim(req.Header.Get("Idempotency-Key"), `"`))
	})
}

// Inside waits until N requests with the key have called Inside or been answered. It returns
// earlier if ctx ends, and at once if the key doesn't end in "-concurrent". Handlers call Inside.
func (r *Race) Inside(ctx context.Context, key string) {
	key = strings.Trim(key, `"`)
	if !strings.HasSuffix(key, "-concurrent") {
		return
	}
	r.arrived(key)
	for {
		r.mu.Lock()
		n, changed := r.there[key], r.changed
		r.mu.Unlock()
		if n >= r.N {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Race) arrived(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.there == nil {
		r.there = make(map[string]int)
	}
	r.there[key]++
	if r.changed != nil {
		close(r.changed)
	}
	r.changed = make(chan struct{})
}
