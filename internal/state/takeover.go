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

// TakenByClient returns the record with which a client's retry takes held over. The new
// record has the retry's input and handler, since the handler may have been renamed
// after the claim. The new record keeps the claim's tenant, because the tenant is part
// of the key.
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

// TakenUp returns the record with which a completer or a sweep takes held over. TakenUp
// adds one to Tries, so that the try counts even if the process then dies.
func TakenUp(held *store.Record, now, lease time.Time, retention time.Duration) *store.Record {
	r := Taken(held, now, lease, retention)
	r.Tries++
	// Don't shorten the list of handovers here. A store's Take appends to the list
	// without reading it, and TakenUp must return the record that Take writes.
	r.Handovers = append(slices.Clone(held.Handovers), store.Handover{At: Millis(now), Kind: HandoverCompleter})
	return r
}

// The kinds of a [store.Handover].
const (
	HandoverRelease   = "release"   // an attempt ended without an answer
	HandoverWithheld  = "withheld"  // an attempt ended with an answer that was withheld
	HandoverRetry     = "retry"     // a client's retry took the record over
	HandoverCompleter = "completer" // a completer or a sweep took the record over
)

// maxHandovers is how many handovers a record keeps after a release or a client's
// retry.
const maxHandovers = 10

// handed returns the handovers of held followed by h, but only the newest maxHandovers.
func handed(held *store.Record, h store.Handover) []store.Handover {
	all := append(slices.Clone(held.Handovers), h)
	return all[max(0, len(all)-maxHandovers):]
}
