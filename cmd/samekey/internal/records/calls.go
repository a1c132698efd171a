package records

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// Call is a call to another system, with a derived key (idem.Tx.Key).
type Call struct {
	Service string `json:"service"`
	Step    string `json:"step,omitempty"`   // the parts of the step, joined by "/"
	Number  int    `json:"number,omitempty"` // number of a call without a step, from 1
	Key     string `json:"key"`              // sent as the call's idempotency key
	// State is "recorded" if a committed phase made the call, and "in doubt" if the call
	// may have been made, but no phase records it.
	State string `json:"state"`
	// Since is the earliest time at which the call may have been sent. The time for
	// which the provider remembers the key begins with the first send.
	Since time.Time `json:"since"`
}

// calls lists r's calls. The result note says which calls the list may lack, and which
// listed calls may never have been made.
func calls(r *store.Record) (all []Call, note string) {
	all = []Call{}
	skipped := r.Calls[state.Skipped]
	for _, name := range slices.Sorted(maps.Keys(r.Calls)) {
		switch service, numbered := strings.CutSuffix(name, "#"); {
		case name == state.Skipped:
			note = "a person settled a phase, and the record doesn't say how many calls the phase made; therefore the list may contain numbered calls that were never made"
		case numbered:
			for n := range r.Calls[name] + skipped {
				all = append(all, callOf(r, service+"#"+strconv.Itoa(n+1), "recorded", r.Created))
			}
		default:
			all = append(all, callOf(r, name, "recorded", r.Created))
		}
	}
	for _, name := range r.Doubts {
		if !state.IsMark(name) {
			all = append(all, callOf(r, name, "in doubt", r.DoubtSince))
		}
	}
	if slices.ContainsFunc(r.Doubts, state.IsMark) {
		note = "an abandoned attempt may have made more calls since " + plain.Time(r.DoubtSince) + "; therefore the list also contains the next call to each known service"
		for service := range r.Calls {
			if base, numbered := strings.CutSuffix(service, "#"); numbered {
				next := base + "#" + strconv.Itoa(r.Calls[service]+skipped+1)
				if !slices.Contains(r.Doubts, next) {
					all = append(all, callOf(r, next, "in doubt", r.DoubtSince))
				}
			}
		}
	}
	keyless := !slices.ContainsFunc(r.Doubts, func(name string) bool { return !state.IsMark(name) })
	if n := len(r.Phases); n > 0 && r.Phases[n-1].Intent && keyless {
		call := r.Phases[n-1]
		says := fmt.Sprintf("the record has no derived key of the call of phase %q: search the other system by the call's data, from %s on", call.Name, plain.Time(r.Created.Add(call.At)))
		if note != "" {
			says = fmt.Sprintf("%s; the call of phase %q may have had no key, or a key that the list lacks: search the other system also by the call's data, from %s on", note, call.Name, plain.Time(r.Created.Add(call.At)))
		}
		note = says
	}
	slices.SortStableFunc(all, func(a, b Call) int {
		if c := strings.Compare(a.State, b.State); c != 0 {
			return -c // recorded calls come first
		}
		return strings.Compare(a.Service, b.Service)
	})
	return all, note
}

// callOf makes a Call from the call's name, which has the form that idem.Tx.Key uses:
// SERVICE#NUMBER or SERVICE/STEP.
func callOf(r *store.Record, name, how string, since time.Time) Call {
	c := Call{Key: state.DerivedKey(r.ID, name), State: how, Since: since.UTC()}
	if service, number, numbered := strings.Cut(name, "#"); numbered {
		c.Service = unescaped(service)
		c.Number, _ = strconv.Atoi(number) // 0 if a later version of Samekey names the call in another way
		return c
	}
	service, step, _ := strings.Cut(name, "/")
	c.Service, c.Step = unescaped(service), unescaped(step)
	return c
}

func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// derives reports whether key is a derived key of r's operation. It compares key with
// the keys of the calls that r names, and with the keys of the calls that services
// names. SERVICE/STEP in services names one call. SERVICE names the first calls to the
// service without a step. The result known is false if no key matches, r may lack
// calls of an abandoned attempt, and services is empty.
func derives(r *store.Record, key string, services ...string) (is, known bool) {
	all, _ := calls(r)
	if slices.ContainsFunc(all, func(c Call) bool { return c.Key == key }) {
		return true, true
	}
	for _, s := range services {
		service, step, _ := strings.Cut(s, "/")
		if step != "" {
			parts := strings.Split(step, "/")
			for i, p := range parts {
				parts[i] = url.PathEscape(p)
			}
			if state.DerivedKey(r.ID, url.PathEscape(service)+"/"+strings.Join(parts, "/")) == key {
				return true, true
			}
			continue
		}
		for n := range guesses {
			if state.DerivedKey(r.ID, url.PathEscape(service)+"#"+strconv.Itoa(n+1)) == key {
				return true, true
			}
		}
	}
	return false, len(services) > 0 || !slices.ContainsFunc(r.Doubts, state.IsMark)
}

// guesses is how many numbered calls the function derives tries for a SERVICE without a
// step.
const guesses = 20
