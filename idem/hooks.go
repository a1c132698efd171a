package idem

import (
	"context"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/hook"
)

// Event describes an occurrence to a hook. An Event holds no key, no body and no
// scope.
type Event struct {
	Name     string        // the hook's name, such as "Claimed"
	Record   string        // short hash that names the record in logs; "" if not known
	ID       string        // server-made id of the operation; "" if not yet known
	Route    string        // the request's route
	Phase    string        // name of the committed phase
	Status   int           // status of the stored answer; 0 if none is stored
	Jobs     int           // number of jobs staged by this commit or answer
	Resumed  bool          // a completer made the attempt: there is no client
	Created  time.Time     // time of the claim; zero if unknown
	Expires  time.Time     // end of the key's lifetime; zero if unknown
	Lease    time.Duration // remaining lease of an operation in flight
	Duration time.Duration // time from the start of a committed phase until it was stored
	Err      error         // cause of a failure; else nil
}

// Hooks are functions that an engine calls as it works. Nil hooks are skipped. Hooks run
// on the goroutine of the request or of its phase, possibly for many requests at once,
// and must neither block nor panic. Hooks get copies of events. In [ModeObserve], Claimed
// and TakenOver aren't called. [Join] combines several Hooks.
type Hooks struct {
	Claimed     func(context.Context, Event) // a new operation begins
	TakenOver   func(context.Context, Event) // an attempt takes over an abandoned operation
	Committed   func(context.Context, Event) // a phase is stored
	Finished    func(context.Context, Event) // an answer is stored
	Released    func(context.Context, Event) // an attempt ends without an answer and gives up its lease
	Replayed    func(context.Context, Event) // a request gets the stored answer
	InFlight    func(context.Context, Event) // a request is refused or gets a 202: another attempt holds the key
	Mismatch    func(context.Context, Event) // a request is refused: the key was used with another request
	Limited     func(context.Context, Event) // a request is refused: the caller's quota is used up
	Stuck       func(context.Context, Event) // an operation got stuck: an operator has to settle it
	Blocked     func(context.Context, Event) // the program can't continue an operation, so each attempt fails: people have to correct the program or the record
	LeaseLost   func(context.Context, Event) // another attempt or an operator has taken the operation over from this attempt
	Unstored    func(context.Context, Event) // the handler's answer was sent but could not be stored: a retry may run the handler again
	Refused     func(context.Context, Event) // a request is refused for another reason, such as a bad key or a stuck operation
	Failed      func(context.Context, Event) // the store or the quota failed, or a record is corrupt, can't be compared or lacks its answer
	Unprotected func(context.Context, Event) // the handler runs without protection: in ModeOpen, the store can't be reached (Err says why); in ModeOff, the request has a key (one that only KeyFrom finds isn't seen)
	Observed    func(context.Context, Event) // ModeObserve runs a request without a key, or a request that ModeEnforce would not run: Err is ErrKeyMissing, or the outcome in ModeEnforce

	// Ended is called once for each request that ran under a key, was replayed or was
	// refused, and once for each try of a completer. Ended is called after the other
	// hooks, even if the handler panics. Ended isn't called for a request that passed
	// without a key or inside of its own operation, nor for a request that ran in
	// ModeObserve or ModeOff.
	Ended func(context.Context, Summary)
}

// Summary describes a whole request to [Hooks].Ended. A Summary holds no key, no body and no
// scope.
type Summary struct {
	Record   string        // short hash that names the record in logs; "" if not known
	ID       string        // id of the operation; "" if not known
	Route    string        // the request's route
	Status   int           // status of the handler's answer, the stored answer or the 202 for an operation in flight; 0 if Err isn't nil
	Resumed  bool          // a completer made the attempt
	Begun    time.Time     // when the request began, by the real clock
	Duration time.Duration // time from Begun to the answer
	Err      error         // the engine's refusal or the handler's error; else nil

	// Happened holds the request's events, in the order in which their hooks were called.
	Happened []Event

	// Cost is what the request cost at the store, if the store counts it ([meter.Meter]).
	// A nested operation has a separate Cost, which isn't included, if its engine has the
	// hook Ended, too.
	Cost store.Cost
}

// happening is the name of an event and of the event's hook.
type happening string

const (
	evClaimed     happening = "Claimed"
	evTakenOver   happening = "TakenOver"
	evCommitted   happening = "Committed"
	evFinished    happening = "Finished"
	evReleased    happening = "Released"
	evReplayed    happening = "Replayed"
	evInFlight    happening = "InFlight"
	evMismatch    happening = "Mismatch"
	evLimited     happening = "Limited"
	evStuck       happening = "Stuck"
	evBlocked     happening = "Blocked"
	evLeaseLost   happening = "LeaseLost"
	evUnstored    happening = "Unstored"
	evRefused     happening = "Refused"
	evFailed      happening = "Failed"
	evUnprotected happening = "Unprotected"
	evObserved    happening = "Observed"
)

type (
	eventHook = func(context.Context, Event)
	hookOf    struct {
		name happening
		hook *eventHook
	}
)

// Hooks.named returns all hooks except Ended, with their names.
func (h *Hooks) named() []hookOf {
	return []hookOf{
		{evClaimed, &h.Claimed},
		{evTakenOver, &h.TakenOver},
		{evCommitted, &h.Committed},
		{evFinished, &h.Finished},
		{evReleased, &h.Released},
		{evReplayed, &h.Replayed},
		{evInFlight, &h.InFlight},
		{evMismatch, &h.Mismatch},
		{evLimited, &h.Limited},
		{evStuck, &h.Stuck},
		{evBlocked, &h.Blocked},
		{evLeaseLost, &h.LeaseLost},
		{evUnstored, &h.Unstored},
		{evRefused, &h.Refused},
		{evFailed, &h.Failed},
		{evUnprotected, &h.Unprotected},
		{evObserved, &h.Observed},
	}
}

// byName returns the hook of each event, by the event's name. A hook that isn't set is
// nil.
func (h *Hooks) byName() map[happening]eventHook {
	set := make(map[happening]eventHook)
	for _, one := range h.named() {
		set[one.name] = *one.hook
	}
	return set
}

// Join combines the given Hooks into one: each hook of the result calls the given hooks
// of the same name, in order. If all given hooks of a name are nil, the result's hook
// is nil.
func Join(all ...Hooks) Hooks {
	var joined Hooks
	for _, h := range all {
		theirs := h.named()
		for i, one := range joined.named() {
			*one.hook = hook.Both(*one.hook, *theirs[i].hook)
		}
		joined.Ended = hook.Both(joined.Ended, h.Ended)
	}
	return joined
}
