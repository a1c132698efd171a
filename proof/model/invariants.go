package model

// The invariants: what must hold in every state, and at every step.

// Invariant is a promise of the protocol.
type Invariant uint8

// The invariants. Holds is none broken.
const (
	Holds Invariant = iota

	UserTwice
	Zombie
	Mixed
	Mismatched
	Robbed
	AfterDone
	OnStuck
	Forgotten
	NoRequest
	TwoLive
	Misjudged

	AnswerChanged
	ReplayDiffers
	WrongAnswer
	Believed
	ReceiptLost
	CallHidden

	JobLost
	JobUncommitted
	JobBack

	KeyForTwoCalls
	TwoKeys
	CalledTwice

	NeverEnds
	KeptForEver
	NeverDelivered
)

var invariants = [...]string{
	Holds: "every promise holds",

	UserTwice:  "the user's write is applied once for an operation",
	Zombie:     "only the owner of a record writes",
	Mixed:      "no write reaches another operation than its own",
	Mismatched: "another request under the key changes nothing, and gets no answer of this one",
	Robbed:     "nobody takes a record from an attempt whose lease has not ended",
	AfterDone:  "nothing changes a finished operation but its jobs and its expiry",
	OnStuck:    "nothing but a settlement changes an operation that waits for people",
	Forgotten:  "nothing that was begun is deleted, freed or replaced unfinished",
	NoRequest:  "a completer takes up only what it can complete",
	TwoLive:    "while the scope of a key changes, one of its two records lives at most",
	Misjudged:  "an honest retry is not taken for another request",

	AnswerChanged: "an operation has one answer",
	ReplayDiffers: "a finished record replays the bytes that were committed with it",
	WrongAnswer:   "a client gets the stored answer, or none",
	Believed:      "a client that is told that its request has failed is right: nothing is done afterwards without it",
	ReceiptLost:   "the answer of an operation that is kept is stored whole",
	CallHidden:    "no operation ends without the result of a call that was made",

	JobLost:        "a job that was committed is delivered before it leaves the record",
	JobUncommitted: "a job is delivered only after its commit",
	JobBack:        "an acknowledged job does not come back",

	KeyForTwoCalls: "a derived key stands for one call with one content",
	TwoKeys:        "one lifetime of a key uses one operation's derived keys",
	CalledTwice:    "the provider acts once for an operation",

	NeverEnds:      "an abandoned operation comes to its end without its client",
	KeptForEver:    "a finished record is let go in the end",
	NeverDelivered: "every committed job is delivered in the end",
}

// String says the promise.
func (i Invariant) String() string { return invariants[i] }

// check returns the invariant that w breaks, by its last step or by itself.
func (m *Model) check(w *world) Invariant {
	if w.Broken != Holds {
		return w.Broken
	}
	if w.Record.lives() && w.Beside.lives() {
		return TwoLive
	}
	for range w.places() {
		if broken := m.checkRecord(w); broken != Holds {
			return broken
		}
		w.at(1 - w.Side)
	}
	w.at(0)
	return m.ending(w)
}

func (m *Model) checkRecord(w *world) Invariant {
	r := &w.Record
	if r.State == None {
		return Holds
	}
	op := w.Ops[r.ID]
	switch {
	case r.State == Done && w.Companions[r.Companion] != r.Answer:
		return ReplayDiffers
	case r.State == Done && op.Answer != r.Answer:
		return AnswerChanged
	case r.Results != op.Results:
		return Mixed
	case r.Jobs&^op.Committed != 0:
		return JobUncommitted
	case r.Jobs != op.Committed&^op.Acked:
		return JobBack
	}
	return Holds
}
