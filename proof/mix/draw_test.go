package mix

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// drawn is all that an episode follows from: a number, and what is switched off. Each
// choice is a hash of the number and of the choice's name, so a choice that is switched
// off leaves the others as they are. That is what shrinking needs.
type drawn struct {
	n   uint64
	off [len(switches)]bool
	plants
}

// String is a seed to repeat an episode by: the number, and the places of the switches
// that are off ("7-3-12"), or of those that are on ("7+1+2") if they are fewer.
func (d *drawn) String() string {
	lists := map[bool]string{}
	n := 0
	for i, off := range d.off {
		sign := "+"
		if off {
			sign = "-"
			n++
		}
		lists[off] += sign + strconv.Itoa(i)
	}
	return strconv.FormatUint(d.n, 10) + lists[n <= len(d.off)/2]
}

func parseSeed(s string) (*drawn, error) {
	parts := strings.FieldsFunc(s, func(c rune) bool { return c == '-' || c == '+' })
	if len(parts) == 0 {
		return nil, errors.New("there is no number")
	}
	n, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil {
		return nil, err
	}
	d := &drawn{n: n}
	only := strings.Contains(s, "+")
	for i := range d.off {
		d.off[i] = only
	}
	for _, p := range parts[1:] {
		i, err := strconv.Atoi(p)
		if err != nil || i < 0 || i >= len(switches) {
			return nil, fmt.Errorf("%q is no switch", p)
		}
		d.off[i] = !only
	}
	return d, nil
}

// choice names something that a seed draws.
type choice string

// switches are all choices that can be switched off, in the order of their numbers. Add
// new ones at the end: the numbers are in seeds.
var switches = [...]choice{
	// The engine's and the store's options.
	resumable, readFirst, retention, maxBody, inline, stored, inFlight, sealed, lease,
	maxTries, renews, deadline,
	// The script.
	phases, foreign, writes, jobsStaged, largeResult, notIdempotent, remembers, sends, ending, status, largeAnswer, largeRequest,
	refuses, always, swallows, fails, panics, dawdles, ignoresEnd, hopeless, deploy,
	// Who calls.
	secondClient, otherBody, impatient, longPause, pastRetention, givesUp,
	// The background.
	completer, ticketLost, operator, drain, ttl,
	// Faults.
	requestLost, answerLost, error500, error500After, throttled, conflict, inProgress, late, duplicated, slow, companions, crashBefore,
	crashAfter, frozen, skewed, hopLost,
	providerLost, providerMute, providerLate, providerDown, providerDenies, providerForgets,
	// Later.
	absent, callsOut, former, retrySign,
	lookUp, neverAgain, comesLate,
	providerOut, onItsWay, findsDown, findsSlowly, findsLate, findsOther,
}

const (
	resumable choice = "Resumable"
	readFirst choice = "ReadFirst"
	retention choice = "Retention"
	maxBody   choice = "MaxBody"
	inline    choice = "Inline"
	stored    choice = "Stored"
	inFlight  choice = "InFlight"
	sealed    choice = "Seal"
	lease     choice = "Lease"
	maxTries  choice = "MaxTries"
	renews    choice = "renewals"
	deadline  choice = "a short time limit"
	callsOut  choice = "CallsOut"
	retrySign choice = "the sign of a retry, true or not"
	former    choice = "Former"

	phases        choice = "phases"
	foreign       choice = "Foreign"
	writes        choice = "writes"
	jobsStaged    choice = "jobs"
	largeResult   choice = "a result near the item's limit"
	notIdempotent choice = "NotIdempotent"
	remembers     choice = "Remembers"
	sends         choice = "Sends"
	ending        choice = "Finish or Respond"
	status        choice = "another status"
	largeAnswer   choice = "a large answer"
	largeRequest  choice = "a large request"
	refuses       choice = "an answer before the end"
	always        choice = "the same answer before the end in each attempt"
	swallows      choice = "an answer in spite of a failed phase"
	fails         choice = "an error of the handler"
	panics        choice = "a panic of the handler"
	dawdles       choice = "a handler that takes its time"
	ignoresEnd    choice = "a handler that works past its time"
	hopeless      choice = "a handler that always fails"
	lookUp        choice = "LookUp"
	neverAgain    choice = "Remembers(0)"
	deploy        choice = "a deploy"

	secondClient  choice = "a second client"
	otherBody     choice = "another request under the key"
	impatient     choice = "a client that retries at once"
	longPause     choice = "a client that retries after the lease"
	pastRetention choice = "a client that retries after the retention"
	givesUp       choice = "a client that gives up"
	absent        choice = "nobody who asks after the faults"
	comesLate     choice = "a client that retries when a look-up may count"

	completer  choice = "the completer"
	ticketLost choice = "a lost ticket"
	operator   choice = "an operator"
	drain      choice = "the drain"
	ttl        choice = "TTL"

	requestLost   choice = "request lost"
	answerLost    choice = "answer lost"
	error500      choice = "500 before"
	error500After choice = "500 after"
	throttled     choice = "throttled"
	conflict      choice = "conflict"
	inProgress    choice = "transaction in progress"
	late          choice = "applied late"
	duplicated    choice = "duplicated"
	slow          choice = "slow"
	companions    choice = "companions fail alone"
	crashBefore   choice = "crash before a call"
	crashAfter    choice = "crash after a call"
	frozen        choice = "frozen"
	skewed        choice = "a wrong clock"
	hopLost       choice = "the client's answer is lost"

	providerLost    choice = "provider: request lost"
	providerMute    choice = "provider: answer lost"
	providerLate    choice = "provider: applied late"
	providerDown    choice = "provider: down"
	providerDenies  choice = "provider: declines"
	providerForgets choice = "provider: forgets"

	providerOut choice = "provider: out for a while, then mute"
	onItsWay    choice = "provider: on its way for long"
	findsDown   choice = "look-up: down for a while"
	findsSlowly choice = "look-up: slow"
	findsLate   choice = "look-up: behind, doesn't know what was made"
	findsOther  choice = "look-up: finds something else"
)

var place = func() map[choice]int {
	m := make(map[choice]int, len(switches))
	for i, c := range switches {
		m[c] = i
	}
	return m
}()

func (d *drawn) on(c choice) bool { return !d.off[place[c]] }

// hash is a number that follows from the seed and the parts.
func (d *drawn) hash(parts ...any) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, d.n)
	for _, p := range parts {
		_, _ = fmt.Fprint(h, "\x00", p)
	}
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// odds draws whether c happens, of a probability.
func (d *drawn) odds(p float64, c choice, parts ...any) bool {
	return d.on(c) && float64(d.hash(append([]any{c}, parts...)...)%1_000_000) < p*1_000_000
}

// pick draws a value of c; the first while c is off.
func pick[T any](d *drawn, c choice, of []T, parts ...any) T {
	if !d.on(c) {
		return of[0]
	}
	return of[d.hash(append([]any{c, "of"}, parts...)...)%uint64(len(of))]
}

// between draws a time from a to b, in whole microseconds.
func (d *drawn) between(a, b time.Duration, parts ...any) time.Duration {
	return a + time.Duration(d.hash(append([]any{"between"}, parts...)...)%uint64((b-a)/time.Microsecond))*time.Microsecond
}

// pad is n bytes that don't compress; text without JSON's special characters.
func (d *drawn) pad(n int, text bool, parts ...any) []byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := make([]byte, n)
	x := d.hash(append([]any{"pad"}, parts...)...) | 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		if b[i] = byte(x >> 32); text {
			b[i] = letters[b[i]%64]
		}
	}
	return b
}
