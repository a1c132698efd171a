package store

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Call describes a call of a [Store] to its medium, such as one PutItem.
type Call struct {
	Op         string        // the medium's name of the call, such as "PutItem"
	Begun      time.Time     // by the real clock
	Duration   time.Duration // with the client's own retries
	Retries    int           // how often the client sent the call again; 0 if unknown
	ReadUnits  float64       // capacity units; 0 if unknown
	WriteUnits float64       // capacity units; 0 if unknown
	Fault      Fault         // kind of Err; NoFault also for a refused condition, which is an answer
	Err        error         // as returned by the client; may be set without a Fault
}

// Fault is the kind of a failed call.
type Fault string

// The kinds of failed calls.
const (
	NoFault   Fault = ""
	Throttled Fault = "throttled" // refused for the load; certainly not applied, if sent once
	Conflict  Fault = "conflict"  // refused because of another write in progress
	Unknown   Fault = "unknown"   // not reached, no answer, or an error of the service: a write may have been applied
	Denied    Fault = "denied"    // the role, its credentials or the key of the encryption do not allow the call
	Invalid   Fault = "invalid"   // the call is malformed, or the table is missing or has another layout
)

// Cost is the sum of several calls.
type Cost struct {
	Calls      int
	Retries    int           // calls that the client sent again
	ReadUnits  float64       // capacity units; 0 if the store doesn't ask for them
	WriteUnits float64       // as ReadUnits
	Faults     map[Fault]int // failed calls; nil without any
}

// Meter sums the calls of a request. An engine with a hook for the sum puts a Meter
// into the context of its calls to the store, and a store that can count adds each
// call to the Meter of the context ([MeterOf]). The zero Meter is ready to use. A
// Meter is safe for concurrent use.
type Meter struct {
	mu   sync.Mutex
	cost Cost
}

// Add adds a call. A nil Meter ignores it.
func (m *Meter) Add(c Call) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cost.Calls++
	m.cost.Retries += c.Retries
	m.cost.ReadUnits += c.ReadUnits
	m.cost.WriteUnits += c.WriteUnits
	if c.Fault != NoFault {
		if m.cost.Faults == nil {
			m.cost.Faults = make(map[Fault]int)
		}
		m.cost.Faults[c.Fault]++
	}
}

// Cost returns the sum so far. A nil Meter has none.
func (m *Meter) Cost() Cost {
	if m == nil {
		return Cost{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cost
	c.Faults = maps.Clone(c.Faults)
	return c
}

type meterKey struct{}

// WithMeter returns a context whose calls m counts. The Meter of an outer context
// doesn't count them.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// MeterOf returns the Meter of a context; nil without one.
func MeterOf(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}
