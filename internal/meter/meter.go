// Package meter sums the calls that a request makes to its store.
package meter

import (
	"context"
	"maps"
	"sync"

	"github.com/samekey/samekey/idem/store"
)

// Meter holds the sum of a request's calls to the store. If an engine's hooks need the
// sum, the engine puts a Meter into the context of its calls. A store that counts its
// calls adds each call to the Meter that [Of] returns. The zero Meter is ready to use. A
// Meter is safe for concurrent use.
type Meter struct {
	mu   sync.Mutex
	cost store.Cost
}

// Add adds a call to the sum. If m is nil, Add does nothing.
func (m *Meter) Add(c store.Call) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cost.Calls++
	m.cost.Retries += c.Retries
	m.cost.ReadUnits += c.ReadUnits
	m.cost.WriteUnits += c.WriteUnits
	if c.Fault != "" {
		if m.cost.Faults == nil {
			m.cost.Faults = make(map[store.Fault]int)
		}
		m.cost.Faults[c.Fault]++
	}
}

// Cost returns the sum so far. The sum of a nil Meter is zero.
func (m *Meter) Cost() store.Cost {
	if m == nil {
		return store.Cost{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cost
	c.Faults = maps.Clone(c.Faults)
	return c
}

type meterKey struct{}

// With returns a context whose Meter is m. Calls with this context are added to m only, even
// if ctx has a Meter already.
func With(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// Of returns the Meter of a context; nil if the context has none.
func Of(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}
