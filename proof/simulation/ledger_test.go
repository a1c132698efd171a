package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// ledger is what an onlooker sees of the tables, change by change.
type ledger struct {
	ops    map[string]*operation      // by id
	jobs   map[string]*job            // by id
	pks    map[string]string          // names of records for the history
	beside map[string]map[string]bool // the other places of a record's key, while scopes change
}

// operation is an operation, as its record was last seen.
type operation struct {
	id, pk string
	since  time.Time
	item   fakedynamo.Item // nil: it is gone
	last   fakedynamo.Item // as it was before it went
}

// job is a job that was committed.
type job struct {
	op, name, kind, order string
	at                    time.Time // not to be delivered before; zero: at once
}

func text(it fakedynamo.Item, name string) string {
	switch v := it[name].(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

func number(it fakedynamo.Item, name string) int {
	n, err := strconv.Atoi(text(it, name))
	if err != nil {
		return 0
	}
	return n
}

func member(it fakedynamo.Item, name string) fakedynamo.Item {
	m, ok := it[name].(*types.AttributeValueMemberM)
	if !ok {
		return nil
	}
	return m.Value
}

// isRecord reports whether an item is a record.
func isRecord(it fakedynamo.Item) bool { return it != nil && it["st"] != nil && it["id"] != nil }

// name is an item's name in the history.
func (w *world) name(pk string) string {
	if known := w.ledger.pks[pk]; known != "" {
		return known
	}
	if strings.HasPrefix(pk, "v1#") {
		known := fmt.Sprintf("record %d", len(w.ledger.pks))
		w.ledger.pks[pk] = known
		return known
	}
	if id, ok := strings.CutPrefix(pk, "job "); ok && w.ledger.jobs[id] != nil {
		return "job " + w.ledger.jobs[id].kind + " of " + w.ledger.jobs[id].order
	}
	return pk
}

// changed looks at a change of a table.
func (w *world) changed(c fakedynamo.Change) {
	w.feed.changed(c, w.byTTL)
	if c.Table == books {
		for _, field := range []string{"created", "paid", "noted", "done"} {
			if n := number(c.New, field); n > 1 && n > number(c.Old, field) {
				w.fail("%s: %s %d times", w.name(pkOf(c.New)), field, n)
			}
		}
		return
	}
	if isRecord(c.Old) {
		w.superseded(c)
	}
	if !isRecord(c.New) {
		return
	}
	id := text(c.New, "id")
	op := w.ledger.ops[id]
	if op == nil {
		op = &operation{id: id, pk: pkOf(c.New), since: time.Now()}
		w.ledger.ops[id] = op
	}
	op.item, op.last = c.New, c.New
	for name, v := range member(c.New, "jobs") {
		w.staged(id, name, v)
	}
	if w.record {
		w.note("table", "%s", w.describe(c.New))
	}
	for _, other := range slices.Sorted(maps.Keys(w.ledger.beside[op.pk])) {
		w.oneHolds(op.pk, other)
	}
}

// twoPlaces notes that a key has two places.
func (w *world) twoPlaces(a, b string) {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if w.ledger.beside[pair[0]] == nil {
			w.ledger.beside[pair[0]] = make(map[string]bool)
		}
		w.ledger.beside[pair[0]][pair[1]] = true
	}
	w.oneHolds(a, b)
}

// oneHolds checks that at most one of a key's two records holds it. Under one of two scopes
// the same key on two routes is two.
func (w *world) oneHolds(a, b string) {
	one, other := w.db.Item(records, a), w.db.Item(records, b)
	if holds(one) && holds(other) && text(one, "route") == text(other, "route") {
		w.fail("%s and %s are of one key, and both hold it", w.name(a), w.name(b))
	}
}

// holds reports whether a record lives and answers. A record that is kept for its jobs
// answers no longer than others.
func holds(it fakedynamo.Item) bool {
	until := seconds(it["until_s"])
	return lives(it) && (until.IsZero() || until.After(time.Now().Add(widest)))
}

// lives reports whether a record has neither expired, by any clock, nor was freed.
func lives(it fakedynamo.Item) bool {
	ends := seconds(it["exp_s"])
	return isRecord(it) && text(it, "keep") != string(store.KeepFreed) && (ends.IsZero() || ends.After(time.Now().Add(widest)))
}

// superseded looks at the record before a change: what it loses, it may lose.
func (w *world) superseded(c fakedynamo.Change) {
	old, id, name := c.Old, text(c.Old, "id"), w.name(pkOf(c.Old))
	same := isRecord(c.New) && text(c.New, "id") == id
	for jobName, v := range member(old, "jobs") {
		if same && member(c.New, "jobs")[jobName] != nil {
			continue
		}
		j := w.ledger.jobs[id+"."+jobName]
		if j != nil && same && w.sent(j, id+"."+jobName) == 0 && !parked(v) {
			w.fail("%s: the job %s of %s is acknowledged, and the queue doesn't have it", name, j.kind, j.order)
		}
	}
	if !same {
		w.ledger.ops[id].item = nil
		switch next := text(c.New, "id"); {
		case c.New == nil:
		case lives(old):
			w.fail("%s: a claim replaces a record that lives", name)
		case w.ledger.ops[next] != nil && text(w.ledger.ops[next].last, "keep") == string(store.KeepFreed):
			w.fail("%s: a claim revives an operation that was freed", name)
		}
		return
	}
	if number(c.New, "ver") < number(old, "ver") {
		w.fail("%s: its version goes back", name)
	}
	if text(old, "st") == "done" {
		if text(c.New, "st") != "done" {
			w.fail("%s: it was done and is %s", name, text(c.New, "st"))
		}
		if r := c.New["resp"]; r != nil && old["resp"] != nil && !reflect.DeepEqual(r, old["resp"]) {
			w.fail("%s: its stored answer changes", name)
		}
	}
}

func parked(v types.AttributeValue) bool {
	m, ok := v.(*types.AttributeValueMemberM)
	return ok && m.Value["f"] != nil
}

// staged notes a job that is in a record.
func (w *world) staged(op, name string, v types.AttributeValue) {
	id := op + "." + name
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok || w.ledger.jobs[id] != nil {
		return
	}
	var t task
	if err := json.Unmarshal([]byte(text(m.Value, "a")), &t); err != nil {
		w.fail("a job with arguments that nobody has staged: %v", err)
	}
	j := &job{op: op, name: name, kind: text(m.Value, "k"), order: t.Order}
	if ms := number(m.Value, "at"); ms != 0 {
		j.at = time.UnixMilli(int64(ms))
	}
	w.ledger.jobs[id] = j
}

func (w *world) describe(it fakedynamo.Item) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, version %s", w.name(pkOf(it)), text(it, "st"), text(it, "ver"))
	if l, ok := it["phases"].(*types.AttributeValueMemberL); ok {
		for _, p := range l.Value {
			if parts, ok := p.(*types.AttributeValueMemberL); ok && len(parts.Value) > 0 {
				if s, ok := parts.Value[0].(*types.AttributeValueMemberS); ok {
					b.WriteString(", " + s.Value)
				}
			}
		}
	}
	if jobs := member(it, "jobs"); len(jobs) > 0 {
		fmt.Fprintf(&b, ", %d jobs", len(jobs))
	}
	if text(it, "lease_ms") == "0" {
		b.WriteString(", released")
	}
	if keep := text(it, "keep"); keep != "" {
		b.WriteString(", kept for " + keep)
	}
	if waits := text(it, "waits"); waits != "" {
		b.WriteString(", waits for people: " + waits)
	}
	return b.String()
}

// waits reports whether people are asked to look at a record.
func waits(it fakedynamo.Item) bool { return it != nil && it["waits"] != nil }

// unsettled says what is still to come; nothing, once all is settled.
func (w *world) unsettled() (open []string) {
	for _, id := range w.ids() {
		op := w.ledger.ops[id]
		it := op.item
		if it == nil {
			continue
		}
		pending := slices.ContainsFunc(slices.Collect(maps.Values(member(it, "jobs"))), func(v types.AttributeValue) bool { return !parked(v) })
		switch {
		case pending:
			open = append(open, w.describe(it))
		case waits(it):
		case text(it, "st") == "open" && (it["exp_s"] == nil || seconds(it["exp_s"]).After(time.Now().Add(-widest)) && text(it, "ver") != "1" && it["phases"] != nil):
			open = append(open, w.describe(it))
		case it["exp_s"] == nil && text(it, "st") != "open":
			open = append(open, w.describe(it))
		}
	}
	for _, url := range []string{ticketsURL, jobsURL} {
		if q := w.queues[url]; len(q.messages) > 0 {
			open = append(open, q.String())
		}
	}
	if !w.feed.empty() {
		open = append(open, "the stream")
	}
	return open
}

// ids are the operations' in the order of their records.
func (w *world) ids() []string {
	place := make(map[string]int)
	for i, it := range w.db.Items(records) {
		place[text(it, "id")] = i + 1
	}
	return slices.SortedFunc(maps.Keys(w.ledger.ops), func(a, b string) int {
		if place[a] != place[b] {
			return place[a] - place[b]
		}
		return strings.Compare(w.ledger.ops[a].pk, w.ledger.ops[b].pk)
	})
}

// check looks at what has become of everything.
func (w *world) check() {
	for _, b := range w.business {
		w.checkBusiness(b)
	}
	for _, id := range slices.Sorted(maps.Keys(w.ledger.jobs)) {
		w.checkJob(id, w.ledger.jobs[id])
	}
	for _, id := range w.ids() {
		it := w.ledger.ops[id].item
		if it == nil || text(it, "st") != "stuck" {
			continue
		}
		if !waits(it) {
			w.fail("%s is stuck, and nobody is told", w.name(pkOf(it)))
		}
		if err := w.bank.askedFirst(id, text(it, "last_err")); err != nil {
			w.fail("%v", err)
		}
		if it["req"] != nil && strings.Contains(text(it, "last_err"), "its request was not stored") {
			w.fail("%s is given up for its request, which is stored", w.name(pkOf(it)))
		}
	}
	for _, c := range w.provider.keys {
		if op := w.ledger.ops[c.op]; !c.declined && text(op.last, "st") != "done" && !waits(op.item) {
			w.fail("%s: charged, its operation is %s, and nobody is told", c.order, text(op.last, "st"))
		}
		if end := w.endOf(c); end.IsZero() || end.Sub(c.made) > memory {
			w.counts[providerForgets]++
		}
	}
}

// endOf is when an operation with a charge was done; zero if it isn't.
func (w *world) endOf(c *charge) time.Time {
	op := w.ledger.ops[c.op]
	if text(op.last, "st") != "done" {
		return time.Time{}
	}
	return seconds(op.last["exp_s"]).Add(-retention)
}

func (w *world) checkBusiness(b *business) {
	name, it := b.order.Order, w.db.Item(books, b.order.Order)
	created, paid, noted, taken := number(it, "created"), number(it, "paid"), number(it, "noted"), w.provider.taken[name]
	is := fmt.Sprintf("created %d, paid %d, noted %d, charged %d", created, paid, noted, taken)
	op := w.ledger.ops[text(it, "op")]
	if it != nil && op == nil {
		w.fail("%s: %s, and there never was a record of it", name, is)
		return
	}
	st, declined := "", false
	if op != nil {
		st, declined = text(op.last, "st"), text(member(op.last, "resp"), "s") == strconv.Itoa(http.StatusPaymentRequired)
	}
	switch {
	case b.status == http.StatusCreated && b.route == "/rides" && created != 1,
		b.status == http.StatusCreated && b.route != "/notes" && (paid != 1 || taken != 1):
		w.fail("%s: the client has 201, and it is %s", name, is)
	case b.status == http.StatusCreated && b.route == "/notes" && noted != 1:
		w.fail("%s: the client has 201, and it is %s", name, is)
	case b.status == http.StatusPaymentRequired && (created != 1 && b.route == "/rides" || paid != 0 || taken != 0):
		w.fail("%s: the client has 402, and it is %s", name, is)
	case b.status == http.StatusConflict && (paid != 0 || taken != 0 || st == "open"):
		w.fail("%s: the client has 409, and it is %s, its operation %s", name, is, st)
	case (paid > 0 || noted > 0) && st != "done" && (b.route != "/fees" || !waits(op.item)):
		w.fail("%s: %s, and its operation is %s", name, is, st)
	case created == 1 && st == "done" && declined && (paid != 0 || taken != 0):
		w.fail("%s: declined, and it is %s", name, is)
	case created == 1 && st == "done" && !declined && (paid != 1 || taken != 1):
		w.fail("%s: done, and it is %s", name, is)
	case created == 1 && st != "done" && !waits(op.item):
		w.fail("%s: %s, its operation is %s, and nobody is told", name, is, st)
	case b.route == "/rides" && created == 0 && taken > 0:
		w.fail("%s: %s", name, is)
	}
}

func (w *world) checkJob(id string, j *job) {
	sent, done := w.sent(j, id), number(w.db.Item(books, "job "+id), "done")
	if j.kind == "ship" {
		done = w.states.started(id)
	}
	op := w.ledger.ops[j.op]
	switch {
	case sent == 0 && (op.item == nil || !parked(member(op.item, "jobs")[j.name])):
		w.fail("the job %s of %s was never delivered, and nobody is told", j.kind, j.order)
	case sent > 0 && done != 1:
		w.fail("the job %s of %s was delivered %d times, and its work is done %d times", j.kind, j.order, sent, done)
	}
}
