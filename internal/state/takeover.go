package state

import (
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Taken returns the record that a take-over writes in place of the record held. The parameter
// retention is the retention of the program that takes over.
func Taken(held *store.Record, now, lease time.Time, retention time.Duration) *store.Record {
	r := *held
	r.Retention = retention
	renew(&r, now, lease)
	r.Run = Millis(now)
	vanished(&r, held, held.Lease)
	return &r
}

// TakenByClient returns the record that a client's retry writes in place of the record held, to
// take it over. The new record has the retry's input and handler, since the handler may have
// another name than at the claim. The new record keeps the claim's tenant, because the tenant is
// part of the key.
func TakenByClient(held *store.Record, now, lease time.Time, retention time.Duration, in *store.Input, by store.HandlerID) *store.Record {
	r := Taken(held, now, lease, retention)
	r.Input, r.Handler = in, by
	h := store.Handover{At: Millis(now), Kind: HandoverRetry}
	if by.Function != held.Handler.Function {
		h.Function = by.Function
	}
	r.Handovers = handed(held, h)
	return r
}

// TakenUp returns the record that a completer or an operator writes in place of the record held,
// to take it over. TakenUp adds one to Tries, so that the try counts even if the process then dies.
func TakenUp(held *store.Record, now, lease time.Time, retention time.Duration) *store.Record {
	r := Taken(held, now, lease, retention)
	r.Tries++
	// Don't shorten the list of handovers here: at each try of a completer, a store's Take appends
	// to the list without reading it, and both must write the same record.
	r.Handovers = append(slices.Clone(held.Handovers), store.Handover{At: Millis(now), Kind: HandoverCompleter})
	return r
}

// The kinds of a [store.Handover].
const (
	HandoverRelease   = "release"   // an attempt ended without an answer
	HandoverWithheld  = "withheld"  // an attempt ended with an answer that was withheld
	HandoverRetry     = "retry"     // a client's retry took the record over
	HandoverCompleter = "completer" // a completer took the record over
)

// maxHandovers is how many handovers a record keeps after a release.
const maxHandovers = 10

// handed returns the most recent handovers of the record held, followed by h.
func handed(held *store.Record, h store.Handover) []store.Handover {
	all := append(slices.Clone(held.Handovers), h)
	return all[max(0, len(all)-maxHandovers):]
}
