//go:build unix

package crash_test

import (
	"fmt"
	"slices"
)

// path is a kind of request: what its handler does, and how its client behaves.
type path struct {
	name   string
	says   string // on the page
	route  string
	before []shot   // faults that come before the cell's
	stages []string // whose calls are crash points
	leaves bool     // the client sends it once, and then only asks for its status
	hook   bool     // the client is a provider of webhooks
	fails  bool     // the handler always fails
	begins release  // of the API's two: the client asks it first, and then the other
	freed  bool     // the first attempt is given up
	late   bool     // between the client's tries, the key's time ends
	polls  bool     // the client asks again each second, whatever Retry-After says
	far    bool     // its job's time is so far away that the world has it come

	effects map[string]int // in the users' table in the end, by kind
	charges int
	mails   int
	ships   int  // executions of Step Functions
	rare    bool // it takes long

	// skips says which cells are beyond what is promised. nil: none.
	skips func(point, *fault) bool

	// waits says whether a cell's request waits for people. nil: never.
	waits func(point, *fault) verdict
}

// release is a release of the API in a roll-out that changes what keys mean.
type release int

const (
	only release = iota
	first
	second
)

// verdict is an expectation.
type verdict int

const (
	never verdict = iota
	always
	either
)

func verdictOf(b bool) verdict {
	if b {
		return always
	}
	return never
}

// point is a row of the matrix: the nth call of that name of an invocation.
type point struct {
	stage string
	call  string
	nth   int
}

func (p point) String() string { return fmt.Sprintf("%s: %s %d", p.stage, p.call, p.nth) }

// shot is a fault and its place.
type shot struct {
	point
	fault *fault
}

var (
	ordered = map[string]int{"order": 1, "paid": 1, "receipt": 1}
	paid    = map[string]int{"paid": 1, "receipt": 1}
	// died is a process that dies behind its first phase.
	died = []shot{{point{atAPI, "TransactWriteItems", 1}, faults[1]}}
	// freed is a key that its first attempt gives back.
	freed = []shot{{point{atAPI, "UpdateItem", 1}, sentTwice}}
	plain = map[string]int{"plain": 1}
)

var paths = []*path{
	{name: "one write", says: "`Finish` with a write. The client retries.", route: "/plain", stages: []string{atAPI}, effects: plain},
	{name: "answer of 600 KB", says: "The same; the answer is stored in companions.", route: "/large", stages: []string{atAPI}, effects: map[string]int{"large": 1}, rare: true},
	{name: "order", says: "`Atomic` with a write, `Foreign` with a charge, `Finish` with a write and a job; drain and consumer follow. The client retries.", route: "/order", stages: []string{atAPI, atWorker, atConsumer}, effects: ordered, charges: 1, mails: 1},
	{name: "order, taken over", says: "The first process was killed behind its first phase; the crash points are those of the attempts after it.", route: "/order", before: died, stages: []string{atAPI}, effects: ordered, charges: 1, mails: 1},
	{
		name: "long work, and later work", says: "`Finish` with a write, a job that starts an execution of Step Functions, and one that is delivered three seconds later: a ticket has the worker deliver it. Each execution has ended before the job can come again.",
		route: "/ship", stages: []string{atWorker}, effects: map[string]int{"order": 1, "receipt": 1}, mails: 1, ships: 1,
	},
	{
		name: "later work, by a schedule", says: "`Finish` with a write and a job for in twenty minutes: a schedule of EventBridge Scheduler sends its ticket. Its time comes at once, in schedule, ticket and record.",
		route: "/later", far: true, stages: []string{atWorker}, effects: map[string]int{"order": 1, "receipt": 1}, mails: 1,
	},
	{name: "charge first", says: "`Foreign`, then `Finish`, with `CallsOut`: nothing is committed before the charge. Between the client's tries, all that may expire does.", route: "/charge", late: true, stages: []string{atAPI}, effects: paid, charges: 1, mails: 1},
	{name: "charge that can't be repeated", says: "The same with `NotIdempotent`. A call with an unknown outcome waits for people, who look it up and settle it.", route: "/payout", stages: []string{atAPI}, effects: paid, charges: 1, mails: 1, waits: inDoubt},
	{name: "charge at a provider that forgets", says: "`Foreign` with `Remembers` of a millisecond, then `Finish`: whoever goes on comes when the provider may have forgotten the key. A call that may have been made waits for people.", route: "/forgotten", stages: []string{atAPI}, effects: paid, charges: 1, mails: 1, waits: inDoubt},
	{
		name: "transfer that is asked for", says: "The same at a system without keys, with a `LookUp`: nobody waits for people. No call is on its way for longer than `within`. The client asks again each second.", route: "/transfer", polls: true,
		stages: []string{atAPI}, effects: paid, charges: 1, mails: 1, skips: tooLate,
	},
	{
		name: "forgotten charge that is asked for", says: "`Foreign` with `Remembers` of a millisecond and a `LookUp`: nobody waits for people. The client asks again each second.", route: "/asked", polls: true,
		stages: []string{atAPI}, effects: paid, charges: 1, mails: 1,
	},
	{name: "accepted, and the client leaves", says: "An order with `Resumable` and `InFlightAccept`. The client sends it once, and then only asks for its status: 202 until it is done.", route: "/accepted", leaves: true, stages: []string{atAPI}, effects: ordered, charges: 1, mails: 1},
	{
		name: "accepted, and left by its process", says: "The same; the first process was killed behind its first phase, and worker and completer do the rest.", route: "/accepted", leaves: true, before: died, stages: []string{atWorker, atResume},
		effects: ordered, charges: 1, mails: 1,
	},
	{
		name: "accepted, and always failing", says: "A handler that answers 409 without keeping it, which no client hears, and then fails each time: it is stuck after `MaxTries`, and waits for people.", route: "/never", leaves: true, fails: true, stages: []string{atWorker, atResume},
		effects: map[string]int{"order": 1}, waits: func(point, *fault) verdict { return always },
	},
	{
		name: "scope changes, first release first",
		says: "One write, while the scope of keys and the scheme of their fingerprint change: two releases run side by side (`Options.Former`, `Fingerprint.Known`). The client asks the first release, which claims under the former scope, and then the second.", route: "/moved", begins: first, stages: []string{atAPI}, effects: plain,
	},
	{name: "scope changes, second release first", says: "The other way round.", route: "/moved", begins: second, stages: []string{atAPI}, effects: plain},
	{
		name: "scope changes, taken over", says: "The process of the first release was killed behind its claim; the second one takes the record over under the former scope.", route: "/moved", begins: first, before: died, stages: []string{atAPI},
		effects: plain,
	},
	{
		name: "scope changes, given up and asked again", says: "The second release has freed the key; the first one fences the freed record under the new scope, and claims.", route: "/moved", begins: second, freed: true, before: freed, stages: []string{atAPI},
		effects: plain,
	},
	{name: "webhook", says: "A signed delivery, repeated until it is answered by 200.", route: "/webhook", hook: true, stages: []string{atAPI}, effects: map[string]int{"event": 1}},
}

// tooLate says whether the network makes a transfer twice, or one arrives once others have
// answered the client: it was on its way for longer than within, so that it is made twice.
func tooLate(p point, f *fault) bool {
	return p.call == "POST /v1/transfers" && slices.Contains([]string{"late", "stopped before", sentTwice.name}, f.name)
}

// inDoubt says whether nobody can know if a call was made: its begin is recorded,
// and its result isn't.
func inDoubt(p point, f *fault) verdict {
	lost := slices.Contains([]string{killedBefore, killedAfter, "answer lost, then killed", "stopped before", "stopped after"}, f.name)
	switch p.call {
	case "POST /v1/charges":
		return verdictOf(f.name != "sent twice")
	case "UpdateItem": // 1: the call begins; 2: its result
		if f.name == "late, in the next attempt" {
			return either // as it comes before the take-over or behind it
		}
		begun := f.name != killedBefore && f.name != "stopped before"
		return verdictOf(lost && (p.nth == 1) == begun)
	}
	return never
}
