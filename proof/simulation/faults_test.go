package simulation

import (
	"maps"
	"slices"
)

// fault is a kind of fault: of the calls, the processes, the clocks, the stream, the queue, of clients,
// the provider and the program itself.
type fault string

const (
	requestLost   fault = "request lost"
	answerLost    fault = "answer lost"
	duplicated    fault = "duplicated on the wire"
	late          fault = "applied late"
	error500After fault = "500 after it was applied"
	error500      fault = "500 before it was applied"
	throttled     fault = "throttled"
	conflict      fault = "transaction conflict"
	inProgress    fault = "transaction in progress"
	crashBefore   fault = "crash before a call"
	crashAfter    fault = "crash after a call"
	frozen        fault = "frozen past the lease"
	skewed        fault = "clock wrong by seconds"
	skewedFar     fault = "clock wrong by an hour"
	ttlEarly      fault = "TTL at once"
	ttlLate       fault = "TTL late"
	streamAgain   fault = "stream batch repeated"
	streamPartial fault = "stream batch failed in part"
	streamPoison  fault = "poison in the stream"
	streamLate    fault = "stream delayed"
	streamMixed   fault = "stream out of order between keys"
	streamLost    fault = "stream lost"
	queueTwice    fault = "message twice"
	queueEarly    fault = "message early"
	queueMixed    fault = "messages out of order"
	queuePartial  fault = "batch of messages accepted in part"
	refusedJob    fault = "job refused for good"

	clientCrash fault = "client crashes, and goes on by its journal"
	sentTwice   fault = "two clients send one request at once"
	otherBody   fault = "same key, other request"
	otherTenant fault = "same key, other tenant"
	keyReused   fault = "key used anew after its expiry"
	timeLimit   fault = "function killed at its time limit"
	handlerErr  fault = "handler fails"
	handlerDies fault = "handler panics"
	hopeless    fault = "handler fails for good"
	refusal     fault = "handler refuses, not stored"
	soldOut     fault = "handler declines after a phase, not stored"
	swallowed   fault = "handler declines for a call's error, not stored"
	deploy      fault = "deploy changes the phases under way"
	rollback    fault = "deploy mends them"

	scopeChanges  fault = "deploy changes the scope of keys"
	schemeChanges fault = "deploy changes the fingerprint"

	companionsDown fault = "companions refused, while records are written"
	timeEnds       fault = "key used again after its time, its call in doubt"

	providerLost    fault = "provider: request lost"
	providerMute    fault = "provider: charged, answer lost"
	providerHangs   fault = "provider: charged, no answer in time"
	providerDown    fault = "provider: down"
	providerBusy    fault = "provider: 409"
	providerDenies  fault = "provider: card declined"
	providerForgets fault = "provider: forgets a key whose operation is open"

	bankOut    fault = "bank: out for a while, then mute"
	bankLate   fault = "bank: a call on its way for long"
	findsDown  fault = "look-up: down for a while"
	findsLate  fault = "look-up: behind, doesn't know what was made"
	findsOther fault = "look-up: finds something else"
)

// faults are all of them, in their order.
var faults = []fault{
	requestLost, answerLost, duplicated, late, error500After, error500, throttled, conflict, inProgress, crashBefore, crashAfter, frozen,
	skewed, skewedFar, ttlEarly, ttlLate, streamAgain, streamPartial, streamPoison, streamLate, streamMixed, streamLost,
	queueTwice, queueEarly, queueMixed, queuePartial, refusedJob,
	clientCrash, sentTwice, otherBody, otherTenant, keyReused, timeLimit, handlerErr, handlerDies, hopeless, refusal, soldOut, swallowed, deploy, rollback,
	providerLost, providerMute, providerHangs, providerDown, providerBusy, providerDenies, providerForgets,
	scopeChanges, schemeChanges, companionsDown, timeEnds, bankOut, bankLate, findsDown, findsLate, findsOther, // behind the others, whose numbers stay
}

// fires draws whether a fault happens, and counts it.
func (w *world) fires(f fault, p float64) bool {
	if !w.may(f) || !w.likely(p*w.rate) {
		return false
	}
	w.counts[f]++
	return true
}

// may reports whether a fault is on.
func (w *world) may(f fault) bool { return !w.calm && !w.off[f] }

// missing are the faults that never fired.
func missing(counts map[fault]int) (none []fault) {
	for _, f := range faults {
		if counts[f] == 0 {
			none = append(none, f)
		}
	}
	return none
}

func add(to, from map[fault]int) {
	for _, f := range slices.Sorted(maps.Keys(from)) {
		to[f] += from[f]
	}
}
