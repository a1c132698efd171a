package client

import (
	"sync"
	"time"
)

// An empty budget is full after savings seconds without retries.
const savings = 10

// budget is a token bucket: each request adds a fraction of a token, each second adds
// perSecond tokens, and each retry takes one token. The budget is full while requests
// succeed. If many requests fail, the budget gets empty, and then only a fraction of the
// failed requests is retried.
type budget struct {
	ratio, perSecond, most float64

	mu     sync.Mutex
	tokens float64
	last   time.Time
}

func newBudget(ratio, perSecond float64) *budget {
	most := max(perSecond*savings, 1)
	return &budget{ratio: ratio, perSecond: perSecond, most: most, tokens: most, last: time.Now()}
}

// budget.request adds a request's fraction of a token.
func (b *budget) request() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(b.ratio)
}

// budget.retry takes a token and returns true. If less than a token is left, retry
// returns false.
func (b *budget) retry() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.add(now.Sub(b.last).Seconds() * b.perSecond)
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

func (b *budget) add(tokens float64) { b.tokens = min(b.tokens+tokens, b.most) }
