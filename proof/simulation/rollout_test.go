package simulation

import (
	"context"
	"strings"
	"time"

	"github.com/samekey/samekey/idem"
)

// release is a release of the API while the meaning of keys changes: their scope, the
// scheme of their fingerprint, or both (docs/operate/changes.md#change-the-meaning-of-a-key).
type release int

const (
	before       release = iota
	claimsFormer         // knows the new meaning, and gives new records the former one
	claimsNew            // gives new records the new meaning, and knows the former one
	after
)

// inOrder is the only order that keeps the promises.
var inOrder = []release{before, claimsFormer, claimsNew, after}

// scoping is how whose a key is was found, and is.
type scoping struct {
	scope func(context.Context, *idem.Request) (string, error)
}

var scopings = []scoping{{}, {account}, {route}}

// account is the scope of a program that names its callers.
func account(_ context.Context, r *idem.Request) (string, error) {
	_, tenant, _ := strings.Cut(r.Identity.Subject, "|")
	return isAccount + tenant, nil
}

// route is the scope of a program that has an account's key once on each route.
func route(ctx context.Context, r *idem.Request) (string, error) {
	of, err := account(ctx, r)
	return of + onRoute + r.Route, err
}

const onRoute = " on "

const isAccount = "account "

// rollOut changes what keys mean, in releases of which each runs beside its neighbours.
type rollOut struct {
	w        *world
	order    []release
	from, to scoping
	scope    bool
	scheme   bool
	json     bool // the new scheme is that of canonical JSON, or else the former one

	begins []time.Duration // of the releases but the first and the patient one
	mix    time.Duration   // for how long a release runs beside the one before
	near   time.Duration   // before and after, clients begin too
	runs   []release       // now
	opened time.Duration   // when the last record of the former meaning was seen open
}

const (
	// inFlight is how long something of a release may come after its end: a process
	// stands still, and then its packet is late.
	inFlight = 2*longest + 2*time.Minute
	// forGood is for how long a roll-out's last step waits, beginning when nothing of the
	// former meaning is open.
	forGood = retention + 2*widest
	// givesUp is when a roll-out stays with the release that knows both meanings.
	givesUp = 14 * time.Hour
)

// plansRollOut draws a roll-out; nil: keys mean the same for the whole episode.
func (w *world) plansRollOut() *rollOut {
	if w.releases == nil && (!w.odds(0.2, "roll-out") || w.off[scopeChanges] && w.off[schemeChanges]) {
		return nil
	}
	r := &rollOut{w: w, order: w.releases, runs: []release{before}, json: w.odds(0.5, "json")}
	n := w.hash("scope") % uint64(len(scopings))
	r.from = scopings[n]
	r.to = scopings[(n+1+w.hash("other scope")%uint64(len(scopings)-1))%uint64(len(scopings))]
	r.scope = !w.off[scopeChanges] && (w.releases != nil || w.odds(0.8, "scope changes"))
	r.scheme = !w.off[schemeChanges] && (!r.scope || w.odds(0.5, "scheme changes"))
	if !r.scope {
		r.to = r.from
	}
	if r.order == nil {
		r.order = inOrder
	}
	r.mix, r.near = w.between(30*time.Second, traffic), time.Minute
	if w.hasty {
		r.mix, r.near, w.rate = w.between(time.Second, 10*time.Second), 5*time.Second, 4
	}
	at := w.between(30*time.Second, traffic)
	for i := range r.order[1:] {
		if r.patient(i + 1) {
			break
		}
		r.begins = append(r.begins, at)
		at += r.mix
		if !w.hasty {
			at += inFlight
		}
	}
	return r
}

// patient reports whether the nth release waits until the former meaning is over: there
// is no record of it that the release could miss.
func (r *rollOut) patient(n int) bool { return r.order[n-1] == claimsNew && r.order[n] == after }

// moment draws when a client begins: near a step. Those of the last step begin with it.
func (r *rollOut) moment() (at time.Duration, withLast bool) {
	n := r.w.rng.IntN(len(r.order) - 1)
	at = r.w.between(-r.near, r.mix+r.near)
	if n == len(r.begins) {
		return max(at, 0), true
	}
	return max(at+r.begins[n], 0), false
}

// begin has the releases come, and then the clients of the last step.
func (r *rollOut) begin(last []*business, then func(end time.Duration)) {
	w := r.w
	for i, at := range r.begins {
		w.at(w.begin.Add(at), func() { r.step(i + 1) })
	}
	end := r.begins[len(r.begins)-1] + r.mix
	if len(r.begins) == len(r.order)-1 {
		then(end)
		return
	}
	r.opened = end + inFlight
	w.at(w.begin.Add(r.opened), func() { r.look(last, then) })
}

// look looks whether the former meaning is over, as an operator does with samekey list --stats.
func (r *rollOut) look(last []*business, then func(time.Duration)) {
	w, now := r.w, time.Since(r.w.begin)
	for _, op := range w.ledger.ops {
		if text(op.item, "st") != "done" && lives(op.item) && op.since.Before(w.begin.Add(r.begins[len(r.begins)-1]+r.mix+inFlight)) {
			r.opened = now
		}
	}
	over := now-r.opened >= forGood
	if !over && now < givesUp {
		w.after(20*time.Minute, func() { r.look(last, then) })
		return
	}
	if over {
		r.step(len(r.order) - 1)
	}
	for _, b := range last {
		b.at += now
		w.start(b)
	}
	then(now + r.mix + time.Minute)
}

// step has the nth release run beside the one before, and then alone.
func (r *rollOut) step(n int) {
	r.w.note("roll-out", "release %d beside %d", r.order[n], r.order[n-1])
	r.runs = r.order[n-1 : n+1]
	r.w.after(r.mix, func() {
		r.w.note("roll-out", "release %d alone", r.order[n])
		r.runs = r.order[n : n+1]
	})
}

// next draws the release of an event. A nil roll-out has one.
func (r *rollOut) next() release {
	if r == nil {
		return before
	}
	if len(r.runs) > 1 && r.w.likely(0.5) {
		return r.runs[1]
	}
	return r.runs[0]
}

// means sets what keys mean to a release.
func (r *rollOut) means(n release, o *idem.Options) {
	if r == nil {
		return
	}
	o.CallerFromOp = true
	now := r.to
	if n == before {
		now = r.from
	}
	o.Scope = now.scope
	between := n == claimsFormer || n == claimsNew
	if r.scope && between {
		o.Former = &idem.Former{Claims: n == claimsFormer, Scope: r.from.scope}
	}
	if r.scheme {
		schemes := []idem.Fingerprint{{CanonicalJSON: !r.json}, {CanonicalJSON: r.json}} // former, new
		mine := 0
		if n >= claimsNew {
			mine = 1
		}
		o.Fingerprint = schemes[mine]
		if between {
			o.Fingerprint.Known = []idem.Fingerprint{schemes[1-mine]}
		}
	}
}
