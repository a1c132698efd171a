package mix

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// The promises. A failure begins with one of these names.
const (
	// A payment is made once for a key and phase, under one derived key, until the
	// answer's time is over, or an operator takes the risk.
	chargedOnce = "charged once"
	// All kept answers of an operation are the same, byte by byte, nobody gets another
	// request's, and an answer that is given as kept is in its record.
	oneAnswer = "one answer"
	// After an answer that isn't kept, the operation is free or gone, and nothing is done
	// under it. "Nothing was done" is true.
	toldIsKept = "told is kept"
	// A record with a call that may have been made doesn't expire: people are asked.
	doubtsStay = "a doubt stays known"
	// With phases or a stored request, a body that fits is never left out.
	receiptStays = "a receipt stays"
	// Once the faults are over, each key gets an answer, or people are asked.
	notForEver = "not for ever"
	// The user's writes and jobs are committed once, with their recovery point, and a
	// phase has one result.
	writtenOnce = "written once"
	// A call in doubt isn't left to people while its provider can be asked.
	asksFirst = "the provider is asked first"
	// Records with phases don't expire, stuck and abandoned operations are listed, and no
	// job goes without a delivery.
	nothingLost = "nothing is forgotten"
	// No claim replaces a record that lives, and no version goes back.
	fenced = "fenced"
	// Every record can be decoded.
	readable = "readable"
)

// ledger is what an onlooker knows of the operations.
type ledger struct {
	ops       map[string]*operation // by id
	order     []*operation
	pks       map[string]string // of records, by client key
	names     map[string]string // of items, for the history
	keys      map[string]string // the client's key of a request, by actor
	delivered map[string]int    // jobs, by id
	own       map[string]bool   // the handler itself fails, by operation
}

// operation is an operation, as its record was last seen.
type operation struct {
	id, name, pk string
	rec          *store.Record // nil: it is gone, or never was
	over         string        // how it ended, once it is gone
	told         time.Time     // since when its client has an answer that isn't kept
	said         string
	answer       *store.Response // kept
	risk         bool            // an operator allows another call
	settled      bool            // an operator has decided
	wrong        bool            // a look-up has found something else
	passes       map[string]int  // phases that an attempt has committed
	results      map[string]string
	jobs         map[string]string // committed jobs, with their steps
}

func (op *operation) fate() string {
	switch {
	case op.over != "":
		return "is gone: " + op.over
	case op.rec == nil:
		return "never had a record"
	}
	return "is " + string(op.rec.State)
}

func newLedger() ledger {
	return ledger{
		ops: make(map[string]*operation), pks: make(map[string]string), names: make(map[string]string), keys: make(map[string]string),
		delivered: make(map[string]int), own: make(map[string]bool),
	}
}

func (l *ledger) op(id string) *operation {
	op := l.ops[id]
	if op == nil {
		op = &operation{id: id, name: fmt.Sprint("operation ", len(l.order)+1), passes: make(map[string]int), results: make(map[string]string), jobs: make(map[string]string)}
		l.ops[id] = op
		l.order = append(l.order, op)
	}
	return op
}

func (w *world) opName(id string) string { return w.ledger.op(id).name }

// name is an item's name in the history: random ids are left out.
func (w *world) name(pk string) string {
	switch {
	case isCompanion(pk):
		return "a part of a body"
	case strings.HasPrefix(pk, "v1#"):
		if w.ledger.names[pk] == "" {
			w.ledger.names[pk] = fmt.Sprint("record ", len(w.ledger.names)+1)
		}
		return w.ledger.names[pk]
	}
	return pk
}

// touch notes which record a request is about: of two, while the scope of its key changes,
// the one that is there.
func (w *world) touch(actor, pk string) {
	key, known := w.ledger.keys[actor]
	if !known || !strings.HasPrefix(pk, "v1#") || isCompanion(pk) {
		return
	}
	if was := w.ledger.pks[key]; was == "" || was != pk && w.load(was) == nil {
		w.ledger.pks[key] = pk
	}
}

// load reads a record, without faults.
func (w *world) load(pk string) *store.Record {
	if pk == "" {
		return nil
	}
	rec, err := w.spy.Load(context.Background(), pk)
	if err != nil {
		w.fail(readable+": a record can't be read: %v", err)
		return nil
	}
	return rec
}

// listed reports whether people are asked to look at a record.
func (w *world) listed(rec *store.Record) bool {
	it := w.db.Item(records, rec.PK)
	return it != nil && it["waits"] != nil
}

// passed notes that a phase of an attempt is committed.
func (w *world) passed(actor, op, step, result string) {
	o := w.ledger.op(op)
	o.passes[strings.ReplaceAll(actor, " ", "-")]++
	if o.rec == nil || !slices.ContainsFunc(o.rec.Phases, func(p store.Phase) bool { return p.Name == step }) {
		return // the result joins a later commit
	}
	if first, known := o.results[step]; known && first != result {
		w.fail(writtenOnce+": phase %s of %s has two results", step, o.name)
	}
	o.results[step] = result
}

// keeps checks an answer that is kept.
func (w *world) keeps(op *operation, rec *store.Record, a told, res idem.Result) {
	if rec != nil && rec.State != store.Done {
		w.fail(oneAnswer+": %s is answered as if it was kept, and is %s", op.name, rec.State)
	}
	if op.answer == nil {
		resp := res.Clone()
		op.answer = &resp
	}
	if op.answer.Status != res.Status || !bytes.Equal(op.answer.Body, res.Body) {
		w.fail(oneAnswer+": %s has two answers: %d and %d", op.name, op.answer.Status, res.Status)
	}
	if rec == nil {
		return
	}
	for _, step := range a.done {
		if !slices.ContainsFunc(rec.Phases, func(p store.Phase) bool { return p.Name == step }) {
			w.fail(writtenOnce+": %s is answered by a run that has passed %s, which its record doesn't have", op.name, step)
		}
	}
}

// freed checks an answer that isn't kept, and after which its client doesn't come back.
func (w *world) freed(op *operation, rec *store.Record, text string) {
	switch {
	case rec != nil && state.Kept(rec): // another record acts for its client only
		w.fail(toldIsKept+": the client hears %s, and %s stays open with %d phases", text, op.name, len(rec.Phases))
	case rec != nil && rec.State == store.Stuck:
		w.fail(toldIsKept+": the client hears %s, and %s is stuck", text, op.name)
	case rec != nil && rec.State == store.Done:
		w.fail(toldIsKept+": the client hears %s, and %s keeps another answer, %d", text, op.name, rec.Response.Status)
	}
	if op.told.IsZero() {
		op.told, op.said = time.Now(), text
	}
}

// changed looks at a change of a table.
func (w *world) changed(c fakedynamo.Change) {
	pk := pkOf(c.New)
	if c.New == nil {
		pk = pkOf(c.Old)
	}
	switch {
	case c.Table == books:
		w.written(pk, c.New)
	case strings.HasPrefix(pk, "v1#") && !isCompanion(pk):
		w.moves(pk)
	}
}

// written looks at a write of the user's.
func (w *world) written(pk string, it fakedynamo.Item) {
	id, step, _ := strings.Cut(pk, "/")
	op := w.ledger.op(id)
	if n, ok := it["n"].(*types.AttributeValueMemberN); !ok || n.Value != "1" {
		w.fail(writtenOnce+": the write of %s of %s is made twice", step, op.name)
	}
	rec := op.rec
	if rec == nil || step == "end" && rec.State != store.Done || step != "end" && !slices.ContainsFunc(rec.Phases, func(p store.Phase) bool { return p.Name == step }) {
		w.fail(writtenOnce+": the write of %s of %s is made without its recovery point", step, op.name)
	}
}

// moves looks at a record that has changed.
func (w *world) moves(pk string) {
	now := w.load(pk)
	var before *operation
	for _, op := range w.ledger.order {
		if op.pk == pk && op.rec != nil {
			before = op
		}
	}
	if before != nil && (now == nil || now.ID != before.id) {
		w.goes(before)
	}
	if now == nil {
		return
	}
	op := w.ledger.op(now.ID)
	if w.former && op.over != "" && state.Free(now, time.Now().Add(15*time.Second)) {
		return // its successor has another record, while the scope of the key changes
	}
	op.pk = pk
	prev := op.rec
	for _, other := range w.ledger.order {
		if prev == nil && other != op && other.rec != nil { // every client has the same key
			w.goes(other)
		}
	}
	op.rec = now
	w.note("table", "%s", w.describe(op))
	if prev != nil {
		w.follows(op, prev, now)
	}
	w.sound(op, now)
	w.leftToPeople(op, prev, now)
	w.background(op, prev, now)
}

// goes looks at a record that TTL deletes, or another operation's claim replaces.
func (w *world) goes(op *operation) {
	rec := op.rec
	op.rec = nil
	switch {
	case rec.State == store.Done:
		op.over = "done"
	case state.Freed(rec):
		op.over = "freed"
	default:
		op.over = "expired unfinished"
	}
	w.note("table", "%s is gone: %s", op.name, op.over)
	switch {
	case !state.Free(rec, time.Now().Add(15*time.Second)):
		w.fail(fenced+": a claim replaces %s, which lives", op.name)
	case rec.State != store.Done && len(rec.Phases) > 0:
		w.fail(nothingLost+": %s is gone with %d phases, unfinished", op.name, len(rec.Phases))
	case rec.State != store.Done && len(rec.Doubts) > 0:
		w.fail(doubtsStay+": %s is gone with calls in doubt", op.name)
	}
	if rec.State != store.Done && !op.risk { // an operator who takes the risk knows of it
		for _, p := range w.provider.all {
			if p.op == op.id && !p.declined && !w.recorded(rec, p) {
				w.fail(doubtsStay+": %s is gone, and nobody knows its payment %s", op.name, p.step)
			}
		}
	}
	for name := range rec.Jobs {
		if w.ledger.delivered[state.JobID(op.id, name)] == 0 {
			w.fail(nothingLost+": %s is gone with a job that was not delivered", op.name)
		}
	}
}

// recorded reports whether the record knows a payment.
func (w *world) recorded(rec *store.Record, p *payment) bool {
	return rec.State != store.Open || slices.ContainsFunc(rec.Phases, func(ph store.Phase) bool { return ph.Name == p.step })
}

// follows looks at what a record was and is.
func (w *world) follows(op *operation, was, is *store.Record) {
	if is.Ver < was.Ver {
		w.fail(fenced+": the version of %s goes back", op.name)
	}
	if was.State == store.Done && (is.State != store.Done || is.Response.Status != was.Response.Status || !bytes.Equal(is.Response.Body, was.Response.Body)) {
		w.fail(oneAnswer+": the kept answer of %s changes", op.name)
	}
	if was.State == store.Open && is.State == store.Done {
		if !op.told.IsZero() && !op.settled {
			w.fail(toldIsKept+": %s ends with %d, and its client was told %s", op.name, is.Response.Status, op.said)
		}
		w.receipt(op, was, is)
	}
	for name := range was.Jobs {
		if _, there := is.Jobs[name]; !there && w.ledger.delivered[state.JobID(op.id, name)] == 0 {
			w.fail(nothingLost+": a job of %s goes without a delivery", op.name)
		}
	}
	if state.Freed(is) && was.Keep == store.KeepOpen && len(was.Phases) > 0 {
		w.fail(nothingLost+": %s is freed with %d phases", op.name, len(was.Phases))
	}
}

// receipt looks at the answer of an operation that is done.
func (w *world) receipt(op *operation, was, is *store.Record) {
	if o := is.Overflow; o != nil && o.Count == 0 && o.Length <= w.maxBody && (len(is.Phases) > 0 || was.Input != nil) {
		w.fail(receiptStays+": of the answer of %s, %d bytes of %d that may be kept, only the status is; it has %d phases, a stored request: %t",
			op.name, o.Length, w.maxBody, len(is.Phases), was.Input != nil)
	}
}

// sound looks at a record by itself.
func (w *world) sound(op *operation, rec *store.Record) {
	for name, job := range rec.Jobs {
		var t task
		if err := json.Unmarshal(job.Args, &t); err != nil || t.Op != op.id {
			w.fail(writtenOnce+": a job of %s is about something else", op.name)
		}
		op.jobs[name] = t.Step
	}
	if rec.State != store.Open || rec.Expires.IsZero() {
		return
	}
	switch {
	case len(rec.Phases) > 0:
		w.fail(nothingLost+": %s has %d phases and will expire", op.name, len(rec.Phases))
	case len(rec.Doubts) > 0:
		w.fail(doubtsStay+": %s has the calls %q in doubt and will expire", op.name, rec.Doubts)
	}
}

// leftToPeople looks at an operation that waits for people in a call.
func (w *world) leftToPeople(op *operation, was, is *store.Record) {
	n := len(is.Phases)
	if is.State != store.Stuck || was == nil || was.State == store.Stuck || n == 0 || !is.Phases[n-1].Intent || w.scripts[0] != w.scripts[1] {
		return
	}
	name := is.Phases[n-1].Name
	i := slices.IndexFunc(w.scripts[0].steps, func(st step) bool { return st.name == name })
	if st := w.scripts[0].steps[i]; st.look && !st.never && !op.wrong && is.Tries < w.maxTries {
		w.fail(asksFirst+": %s is stuck in %s after %d tries: %s", op.name, name, is.Tries, is.LastErr)
	}
}

func (w *world) describe(op *operation) string {
	rec := op.rec
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, version %d", op.name, rec.State, rec.Ver)
	for _, p := range rec.Phases {
		b.WriteString(", " + p.Name)
		if p.Intent {
			b.WriteString("?")
		}
	}
	if len(rec.Doubts) > 0 {
		fmt.Fprintf(&b, ", doubts %v", rec.Doubts)
	}
	if len(rec.Jobs) > 0 {
		fmt.Fprintf(&b, ", %d jobs", len(rec.Jobs))
	}
	if rec.State == store.Open && rec.Lease.IsZero() {
		b.WriteString(", released")
	}
	if rec.State == store.Open && state.Freed(rec) {
		b.WriteString(", freed")
	}
	if rec.Response != nil {
		b.WriteString(", answer " + strconv.Itoa(rec.Response.Status))
	}
	if rec.Overflow != nil {
		fmt.Fprintf(&b, ", its body in %d parts", rec.Overflow.Count)
	}
	if rec.Keep != store.KeepNothing {
		b.WriteString(", kept for " + string(rec.Keep))
	}
	if rec.Tries > 0 {
		fmt.Fprintf(&b, ", %d tries", rec.Tries)
	}
	if rec.Blocked {
		b.WriteString(", blocked")
	}
	if rec.Asked != nil {
		fmt.Fprintf(&b, ", looked up %d times: %s", rec.Asked.Times, rec.Asked.Said)
	}
	return b.String()
}

// background has completer, drain and operator notice a change.
func (w *world) background(op *operation, prev, rec *store.Record) {
	if state.Completable(rec) && w.on(completer) && (w.calm.Load() || !w.odds(0.05*w.rate, ticketLost, op.name, rec.Ver)) {
		t := state.TicketFor(rec)
		w.after(time.Until(state.Due(rec, time.Now(), grace))+w.between(time.Millisecond, 2*time.Second, "ticket", op.name, rec.Ver), func() { w.takeUp(t) })
	}
	if len(rec.Jobs) > 0 && w.odds(0.7, drain, op.name, rec.Ver) && (prev == nil || prev.Ver != rec.Ver) {
		w.after(w.between(10*time.Millisecond, 20*time.Second, "drain", op.name, rec.Ver), func() { w.deliver(rec.PK, rec.ID) })
	}
	if rec.State == store.Stuck && (prev == nil || prev.State != store.Stuck) && w.odds(0.6, operator, op.name, rec.Ver) {
		w.after(longest+30*time.Minute+w.slowest(), func() { w.settle(op) }) // when no copy of a call is on its way
	}
}

// settle has an operator decide about a stuck operation, by what the provider says.
func (w *world) settle(op *operation) {
	rec := op.rec
	if rec == nil || rec.State != store.Stuck || w.swept {
		return
	}
	var s idem.Settlement
	what := "try again"
	if n := len(rec.Phases); n > 0 && rec.Phases[n-1].Intent {
		paid := w.paid(op.id, rec.Phases[n-1].Name)
		switch {
		case rec.Input != nil && w.hash("operator asks", op.name)%4 == 0:
			s.Ask, what = true, "look it up"
		case w.hash("operator", op.name)%4 == 0:
			s.RiskTwice, what, op.risk = true, "risk it", true
		case paid != nil:
			s.Result, what = json.RawMessage(strconv.Quote(paid.id)), "it was paid"
		default:
			s.NotMade, what = true, "it was not paid"
		}
	} else if w.hash("operator answers", op.name)%2 == 0 {
		s.Answer, what = &idem.Response{Status: 200, Body: []byte("an operator's")}, "an answer"
	}
	op.settled = true
	w.note("operator", "decides about %s: %s", op.name, what)
	p := w.start(w.fleet.version)
	w.invoke(p, "operator", 20*time.Second, func(ctx context.Context) func() {
		err := p.engine.Settle(ctx, rec.PK, s)
		return func() {
			if err != nil {
				w.note("operator", "%v", outcome(err)[2:])
			}
		}
	}, func() {})
}

// expire deletes expired items, as TTL does: soon or late.
func (w *world) expire() {
	for i, it := range w.db.Items(records) {
		pk := pkOf(it)
		n, ok := it["exp_s"].(*types.AttributeValueMemberN)
		if !ok || !w.on(ttl) {
			continue
		}
		at, err := strconv.ParseInt(n.Value, 10, 64)
		if err == nil && time.Now().Unix() > at+1 && w.hash("ttl", i, time.Since(w.begin))%2 == 0 {
			w.note("ttl", "deletes %s", w.name(pk))
			w.db.Expire(records, pk)
		}
	}
	w.after(30*time.Minute, w.expire)
}

// check looks at what has become of everything.
func (w *world) check() {
	for _, op := range w.ledger.order {
		if op.rec != nil {
			w.settledDown(op, op.rec)
		}
	}
}

func (w *world) settledDown(op *operation, rec *store.Record) {
	listed := w.listed(rec)
	if rec.State == store.Stuck && !listed {
		w.fail(nothingLost+": %s is stuck, and nobody is told", op.name)
	}
	if rec.State == store.Open && !state.Freed(rec) && !listed {
		for _, p := range w.provider.all {
			if p.op == op.id && !p.declined && !w.recorded(rec, p) {
				w.fail(doubtsStay+": %s made payment %s, no phase records it, and nobody is told", op.name, p.step)
			}
		}
		if len(rec.Phases)+len(rec.Jobs) > 0 {
			w.fail(nothingLost+": %s is open with %d phases, and nobody is told", op.name, len(rec.Phases))
		}
	}
	for name := range rec.Jobs {
		if rec.Jobs[name].Failed == "" && !listed && rec.State == store.Done {
			w.fail(nothingLost+": a job of %s waits for ever", op.name)
		}
	}
	w.complete(op, rec)
}

// complete looks for what a phase should have committed.
func (w *world) complete(op *operation, rec *store.Record) {
	for _, st := range w.scripts[0].steps {
		if !slices.ContainsFunc(rec.Phases, func(p store.Phase) bool { return p.Name == st.name && !p.Intent }) || op.settled {
			continue
		}
		if st.writes && w.db.Item(books, op.id+"/"+st.name) == nil {
			w.fail(writtenOnce+": phase %s of %s is recorded without its write", st.name, op.name)
		}
		n := 0
		for _, step := range op.jobs {
			if step == st.name {
				n++
			}
		}
		if n != st.jobs {
			w.fail(writtenOnce+": phase %s of %s has committed %d jobs of %d", st.name, op.name, n, st.jobs)
		}
	}
}
