package model

// The world of one key: its record (two while its scope changes), what really happened to its operations, the
// attempts, packets that are late, and the drain.

// most is how many attempts a world has at most: requests of clients, take-ups by
// completers, and operators.
const most = 5

// Record is the record of the key, as far as safety depends on it. Times are
// abstract: a lease is held or has ended, an expiry lies ahead or has passed.
type Record struct {
	State   RecordState
	Owner   uint8 // nonce of the attempt that wrote last
	Ver     uint8 // number of that write
	Lease   Lease
	Expires Expiry
	Keep    Keep
	Stale   bool // the expiry may pass before the lease ends; only if a rule is off

	Request uint8    // fingerprint
	Scheme  uint8    // of the fingerprint
	Input   bool     // the request itself is stored
	ID      uint8    // of the operation
	Results [2]uint8 // results of the committed phases; 0 for a phase to come
	Intent  bool     // the call of the next phase has begun, and must not be repeated
	Mark    bool     // the holder may have begun the call of the next phase
	Doubts  Doubts   // calls that may have been made, and that no phase records
	Since   uint8    // age of the first such call
	Run     uint8    // age of the last attempt's begin
	Turn    uint8    // of its last holder: holders are counted, if calls are looked up
	Until   uint8    // turn of the last holder that may have sent a call in doubt
	Jobs    Jobs     // staged and not acknowledged

	Answer    uint8 // the stored response
	Companion uint8 // where its body is
	Tries     uint8 // take-ups by completers
}

// RecordState is where an operation stands.
type RecordState uint8

// The states of a record.
const (
	None RecordState = iota
	Open
	Done
	Stuck
)

// Lease says whether an attempt holds the record.
type Lease uint8

// The leases.
const (
	Released Lease = iota // the attempt gave the record back
	Ended                 // the lease has ended, and the attempt never came back
	Held
)

// Expiry says when the key becomes free.
type Expiry uint8

// The expiries.
const (
	Never Expiry = iota // the record is kept
	Ahead
	Passed
	Freed // its operation is over, and the next claim replaces it
)

// Keep is the reason why a record must not expire.
type Keep uint8

// The reasons.
const (
	KeepNothing Keep = iota
	KeepOpen
	KeepJobs
)

// Doubts is a set of calls in doubt.
type Doubts uint8

// The calls: this one, and any.
const (
	TheCall Doubts = 1 << iota
	AnyCall
)

// Jobs is a set of jobs.
type Jobs uint8

// The jobs: one is staged with the first commit, another with the answer.
const (
	Early Jobs = 1 << iota
	Late
	AllJobs = Early | Late
)

// truth is what really happened to an operation. The protocol never reads it: the
// invariants compare it with the record.
type truth struct {
	Life      uint8    // in which lifetime of the key the operation was claimed
	Side      uint8    // at which of the key's places
	Writes    uint8    // how often the user's write of its Atomic was applied
	Results   [2]uint8 // that were committed
	Committed Jobs
	Delivered Jobs
	Acked     Jobs
	Image     Jobs  // in the record when it was finished
	Answer    uint8 // that was stored
	Told      bool  // a client was told that it has failed for good
	Sent      uint8 // data of its call, plus 1; 0 if it was never made
	Age       uint8 // of the call
	Effects   uint8 // of the call at the provider
	Turn      uint8 // of the sender of the copy that had the effect
}

// attempt is one try at the operation: a request of a client, a take-up by a
// completer, or an operator. Any attempt may stop for good or sleep at any point.
type attempt struct {
	At      point
	Seen    Record // as the attempt last wrote or saw it, without what it doesn't use
	Request uint8  // fingerprint of its request
	Called  bool   // it may have made the call, and no commit records that
	Unsure  bool   // its last write has no answer yet
	Again   uint8  // 1 if a conflict made the attempt run its phase again
	Old     bool   // the key's lifetime has ended since its first claim
	Refuses bool   // its handler refused the request, with a 4xx
	Bare    bool   // the body of its answer can't be written
	Heard   bool   // its look-up has found no call, and it hasn't decided yet; only if a rule is off
	Tries   int8   // by how much its release changes the tries
	Away    bool   // it has changed to the key's other place, because a record is there
	Over    stamp  // of the freed record that its claim replaces
	Fence   stamp  // of the record that it has fenced at the other place
	Fenced  bool   // it has fenced one
	Told    uint8  // the answer that its client got, for traces
}

// packet is a write on its way to the store.
type packet struct {
	Write   Action
	By      uint8  // nonce of its sender, the next owner
	Seen    Record // the record that the write is conditional on
	Over    stamp  // of the freed record that a claim replaces; none in a claim that knows of no record
	Fence   stamp  // of the record beside a claim
	Results [2]uint8
	Intent  bool
	Value   uint8 // the answer
	Request uint8
	Free    bool  // a release that frees the key
	Side    uint8 // the key's place that it writes
	Bare    bool  // a finish without the answer's body
	Tries   int8  // by how much a release changes the tries
}

// copied is a copy of an operation's call, and the turn of its sender.
type copied struct{ Op, Turn uint8 }

// stamp is the owner and the version of a record; zero for none.
type stamp struct{ Owner, Ver uint8 }

func (r *Record) stamp() stamp { return stamp{r.Owner, r.Ver} }

// drain is the delivery under way: jobs that were delivered and are not yet
// acknowledged.
type drain struct {
	Step drainStep
	Op   uint8
	Jobs Jobs
}

// budget is how often a kind of trouble may still happen.
type budget struct{ Lost, Late, Conflict, Fail, Early, Twice, DrainDies, Renew, Body, Back, Slow uint8 }

// world is a state of the model.
type world struct {
	Record     Record
	Beside     Record          // at the key's other place, while its scope changes
	Old        Record          // an older Record, which a read may show; only if a rule is off
	Side       uint8           // the place of Record; 0, the former one, between steps
	Ops        [most + 1]truth // by id
	Attempts   [most]attempt
	Companions [2*most + 1]uint8 // contents by name
	Late       [2]packet
	Drain      drain
	Life       uint8           // counts the key's lifetimes
	KeyOf      [most + 2]uint8 // by lifetime: the operation whose derived key was used
	Age        uint8           // 1 once the provider has forgotten the first calls
	Slow       [2]copied       // calls that are on their way to the provider
	Turns      uint8           // counts the holders, if calls are looked up
	Within     uint8           // so much time has passed since the lease of this turn that its calls have arrived, and show
	Newest     Program         // the newest release of the program; the release before it may still run
	Left       budget
	Broken     Invariant // the first invariant that a step broke
}

// breaks notes a broken invariant.
func (w *world) breaks(i Invariant) {
	if w.Broken == Holds {
		w.Broken = i
	}
}

// at makes Record the record at one of the key's places.
func (w *world) at(side uint8) {
	if w.Side != side {
		w.Record, w.Beside, w.Side = w.Beside, w.Record, side
	}
}

// places is how many records the key may have.
func (w *world) places() int {
	if w.Beside.State == None {
		return 1
	}
	return 2
}

// lives reports whether r is a record that has neither expired nor was freed.
//
// Code: state.Free
func (r *Record) lives() bool { return r.State != None && r.Expires != Passed && r.Expires != Freed }

func (w *world) op() *truth { return &w.Ops[w.Record.ID] }

// keeps sets why the record is kept, and its expiry: no expiry while it is kept.
//
// Code: state.Advanced, state.Finished, state.MadeStuck
func (m *Model) keeps(r *Record, why Keep) {
	r.Keep = why
	switch {
	case why == KeepNothing:
		r.Expires = Ahead
	case m.on(NoExp):
		r.Expires = Never
	case r.Expires == Never:
		r.Expires = Ahead
	}
}

// known is the part of a record that an attempt carries along.
func known(r Record) Record {
	r.Stale, r.Expires, r.Answer, r.Companion, r.Tries = false, Never, 0, 0, 0
	if r.Keep = KeepNothing; r.Lease == Held {
		r.Lease = Ended // who takes over later knows only that it was not given back
	}
	return r
}

// held is the part of a record that its holder carries along.
func held(r Record) Record {
	r = known(r)
	r.Lease = Released // a holder doesn't ask about its own lease
	return r
}
