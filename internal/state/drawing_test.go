package state

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// The states of the drawing.
const (
	none       = "[*]" // there is no record, or the record has expired
	held       = "held"
	abandoned  = "abandoned"
	released   = "released"
	isStuck    = "stuck"
	kept       = "kept"
	replayable = "replayable"
)

// classOf returns the drawing's state for a record.
func classOf(r *store.Record, now time.Time) string {
	if word := Word(r, now); word != "free" {
		return word
	}
	return none
}

// Labels of the drawing that are not functions of this package.
const (
	leaseEnds = "the lease ends"
	expires   = "expires"
	letGo     = "let go"                // dynamo's expression, with the last acknowledgement
	answered  = "Settled with Finished" // an operator's answer, in one write
)

// move is a transition as its callers may apply it: the records, as written, that
// may result from r at now; none if its callers don't apply it to r.
type move func(r *store.Record, now time.Time) []*store.Record

const aLease, aRetention = 30 * time.Second, 2 * time.Hour

var (
	phasesOf = [][]store.Phase{{{Name: "p"}}, {{Name: "p", Intent: true}}}
	jobsOf   = []map[string]store.Job{nil, {"0.0": {Kind: "k"}}}
)

// lookOf is a look-up of a call of r in doubt; nil without one.
func lookOf(r *store.Record, now time.Time) *LookedUp {
	d := Doubtful{Phase: "p", Call: "pay#0", Keyless: true, Memory: time.Hour}
	if !d.Asks(r, now) {
		return nil
	}
	return &LookedUp{Asked: d.Asked(r, Asking{Sent: d.Sent(r), Within: time.Minute, Began: now})}
}

// moves are all transitions. The functions of this package go by their names.
var moves = map[string]move{
	"Claimed": func(r *store.Record, now time.Time) (all []*store.Record) {
		if classOf(r, now) != none {
			return nil
		}
		for _, r := range []store.Record{{}, {Input: &store.Input{}}, {Keep: store.KeepOpen, Mark: AnyCall}} {
			r.PK, r.ID, r.Retention = "k", "i", aRetention
			all = append(all, stamped(Claimed(r, now, now.Add(aLease)), nil, "a"))
		}
		return all
	},
	"Calling": byHolder(func(r *store.Record, _ time.Time) []*store.Record { return []*store.Record{Calling(r, AnyCall, nil)} }),
	"CallingOnce": byHolder(func(r *store.Record, _ time.Time) []*store.Record {
		return []*store.Record{Doubtful{Phase: "p", Call: "pay#0", Keyless: true, Memory: time.Hour}.CallingOnce(r, nil)}
	}),
	"Advanced": byHolder(func(r *store.Record, now time.Time) (all []*store.Record) {
		for _, phases := range phasesOf {
			for _, jobs := range jobsOf {
				all = append(all, Advanced(r, now, phases, jobs, nil))
			}
		}
		return all
	}),
	"IntentReplaced": byHolder(func(r *store.Record, now time.Time) []*store.Record {
		if n := len(r.Phases); n == 0 || !r.Phases[n-1].Intent {
			return nil
		}
		return []*store.Record{IntentReplaced(r, now, nil, nil), IntentReplaced(r, now, phasesOf[0], nil)}
	}),
	"Renewed": byHolder(func(r *store.Record, now time.Time) []*store.Record {
		return []*store.Record{Renewed(r, now, now.Add(aLease))}
	}),
	"Finished": byHolder(func(r *store.Record, now time.Time) []*store.Record {
		return []*store.Record{Finished(r, store.Response{}, now)}
	}),
	"MadeStuck": byHolder(func(r *store.Record, now time.Time) []*store.Record { return []*store.Record{MadeStuck(r, now, "why")} }),
	"Released": byHolder(func(r *store.Record, now time.Time) (all []*store.Record) {
		for _, refused := range []bool{false, true} {
			for _, calls := range [][]string{nil, {"pay#0"}} {
				all = append(all, Released(r, now, Release{Refused: refused, Calls: calls, Look: lookOf(r, now)}))
				all = append(all, Released(r, now, Release{Refused: refused, Calls: calls}), Released(r, now, Release{Refused: refused, Calls: calls, Answers: true}))
			}
		}
		return all
	}),
	"TakenByClient": byNext(func(r *store.Record, now time.Time) *store.Record {
		return TakenByClient(r, now, now.Add(aLease), aRetention, r.Input, r.Handler)
	}),
	"TakenUp": byNext(func(r *store.Record, now time.Time) *store.Record {
		return TakenUp(r, now, now.Add(aLease), aRetention)
	}),
	"Settled": func(r *store.Record, now time.Time) (all []*store.Record) {
		for _, s := range []Settlement{{}, {NotMade: true}, {RiskTwice: true}, {Result: []byte("1")}, {Ask: true}} {
			if !Settleable(r, s, now) {
				continue
			}
			if next, err := Settled(r, s, now); err == nil {
				all = append(all, stamped(next, r, "operator"))
			}
		}
		return all
	},
	"Emptied": func(r *store.Record, now time.Time) []*store.Record {
		if r == nil || r.State != store.Stuck {
			return nil
		}
		return []*store.Record{stamped(Emptied(r), r, "sweep")}
	},
	"LeaseEnded": byOperator(func(r *store.Record, now time.Time) (*store.Record, error) { return LeaseEnded(r, now, "jane") }),
	"Forgotten": byOperator(func(r *store.Record, now time.Time) (*store.Record, error) {
		return Forgotten(r, now, "jane", Loss{Held: true, Work: true, Jobs: true})
	}),
	"Erased": byOperator(func(r *store.Record, now time.Time) (*store.Record, error) { return Erased(r, now, "jane") }),
	answered: func(r *store.Record, now time.Time) []*store.Record {
		s := Settlement{Answer: &store.Response{Status: 410}}
		if !Settleable(r, s, now) {
			return nil
		}
		next, err := Settled(r, s, now)
		if err != nil {
			return nil
		}
		return []*store.Record{stamped(Finished(next, *s.Answer, now), r, "operator")}
	},
	letGo: func(r *store.Record, _ time.Time) []*store.Record {
		if r == nil || r.State != store.Done || r.Keep != store.KeepJobs {
			return nil
		}
		next := *r
		next.Jobs, next.Keep, next.Expires = nil, store.KeepNothing, r.Until
		next.Until = time.Time{}
		next.WaitSince = time.Time{}
		return []*store.Record{&next}
	},
}

// byHolder is a move of the attempt that holds the record.
func byHolder(m move) move {
	return func(r *store.Record, now time.Time) []*store.Record {
		if classOf(r, now) != held {
			return nil
		}
		all := m(r, now)
		for i, next := range all {
			written := *next
			all[i] = stamped(&written, r, r.Owner)
		}
		return all
	}
}

// byNext is a move of another attempt, on a record that no attempt holds.
func byNext(m func(*store.Record, time.Time) *store.Record) move {
	return func(r *store.Record, now time.Time) []*store.Record {
		if r == nil || !Abandoned(r, now) {
			return nil
		}
		return []*store.Record{stamped(m(r, now), r, "b")}
	}
}

// byOperator is a move of an operator, on any record.
func byOperator(m func(*store.Record, time.Time) (*store.Record, error)) move {
	return func(r *store.Record, now time.Time) []*store.Record {
		if r == nil {
			return nil
		}
		next, err := m(r, now)
		if err != nil {
			return nil
		}
		return []*store.Record{stamped(next, r, "operator")}
	}
}

func stamped(next, prev *store.Record, owner string) *store.Record {
	Stamp(next, prev, owner)
	return next
}

// edges returns all moves between the states, from records that up to four writes
// make.
func edges() map[string]bool {
	found := make(map[string]bool)
	type node struct {
		r   *store.Record
		now time.Time
	}
	begin := time.Unix(1_000_000, 0)
	todo, seen := []node{{nil, begin}}, make(map[string]bool)
	for writes := 0; writes <= 4; writes++ {
		var next []node
		for _, n := range todo {
			for _, now := range clocks(n.r, n.now) {
				from := classOf(n.r, now)
				for name, m := range moves {
					for _, r := range m(n.r, now) {
						found[edge(from, classOf(r, now), name)] = true
						if id := idOf(*r, now); !seen[id] {
							seen[id] = true
							next = append(next, node{r, now})
						}
					}
				}
			}
			timeEdges(found, n.r, n.now)
		}
		todo = next
	}
	return found
}

// idOf returns a text that is the same for equal records.
func idOf(r store.Record, now time.Time) string {
	asked := ""
	if r.Asked != nil {
		a := *r.Asked
		a.At, a.Times = time.Time{}, 0 // no transition depends on them
		asked, r.Asked = fmt.Sprintf("%+v", a), nil
	}
	return fmt.Sprintf("%+v %s %v", r, asked, now)
}

// clocks returns now, and the times just after each of the record's own times.
func clocks(r *store.Record, now time.Time) []time.Time {
	all := []time.Time{now}
	if r != nil {
		for _, at := range []time.Time{r.Lease, r.Until, r.Expires} {
			if at.After(now) {
				all = append(all, at.Add(time.Second))
			}
		}
	}
	return all
}

// timeEdges adds the edges that a record takes without a write.
func timeEdges(found map[string]bool, r *store.Record, now time.Time) {
	if r == nil {
		return
	}
	type event struct {
		at   time.Time
		name string
	}
	events := []event{{r.Expires, expires}, {r.Lease, leaseEnds}}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	from := classOf(r, now)
	for _, e := range events {
		if !e.at.After(now) {
			continue
		}
		if to := classOf(r, e.at.Add(time.Second)); to != from {
			found[edge(from, to, e.name)] = true
			from = to
		}
	}
}

func edge(from, to, name string) string { return from + " --> " + to + ": " + name }

const (
	page = "../../docs/inside/architecture.md"
	done = "done" // in the drawing: kept with jobs, else replayable
)

// The drawing in docs/inside/architecture.md has an edge for each transition, and no other.
// The package comment has the same drawing.
func TestDrawing(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```mermaid\nstateDiagram-v2\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	drawn := make(map[string]bool)
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			switch m := arrow.FindStringSubmatch(line); {
			case m == nil && !strings.HasPrefix(line, "direction "):
				t.Errorf("%s: this line of the drawing is not understood: %s", page, line)
			case m == nil, m[1] == done:
			case m[2] == done:
				drawEdges(drawn, m[1], kept, m[3])
				drawEdges(drawn, m[1], replayable, m[3])
			default:
				drawEdges(drawn, m[1], m[2], m[3])
			}
			if m := arrow.FindStringSubmatch(line); m != nil && !strings.Contains(string(doc), "\n//\t"+line+"\n") {
				t.Errorf("the package comment lacks the line: %s", line)
			}
		}
	}
	if n, m := strings.Count(string(doc), " --> "), strings.Count(fmt.Sprint(blocks), " --> ")/2; n != m {
		t.Errorf("the package comment has %d edges, the page %d", n, m)
	}
	made := edges()
	for _, e := range slices.Sorted(maps.Keys(drawn)) {
		if !made[e] {
			t.Errorf("%s draws an edge that no transition makes: %s", page, e)
		}
	}
	for _, e := range slices.Sorted(maps.Keys(made)) {
		if !drawn[e] {
			t.Errorf("%s doesn't draw the edge %s", page, e)
		}
	}
}

var arrow = regexp.MustCompile(`^(\S+) --> (\S+): (.+)$`)

// drawEdges adds an edge for each transition in a label.
func drawEdges(drawn map[string]bool, from, to, label string) {
	for name := range strings.SplitSeq(label, ", ") {
		drawn[edge(from, to, name)] = true
	}
}

// An attempt whose lease has ended may write as before, until another attempt has
// taken over: its transitions lead to the same states as a holder's. So the
// drawing leaves them out.
func TestLateHolder(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	r := stamped(Claimed(store.Record{PK: "k", ID: "i", Retention: aRetention}, now, now.Add(aLease)), nil, "a")
	late := now.Add(aLease + time.Second)
	for name, next := range map[string]func(now time.Time) *store.Record{
		"Calling":   func(time.Time) *store.Record { return Calling(r, AnyCall, nil) },
		"Advanced":  func(now time.Time) *store.Record { return Advanced(r, now, phasesOf[0], nil, nil) },
		"Renewed":   func(now time.Time) *store.Record { return Renewed(r, now, now.Add(aLease)) },
		"Finished":  func(now time.Time) *store.Record { return Finished(r, store.Response{}, now) },
		"MadeStuck": func(now time.Time) *store.Record { return MadeStuck(r, now, "why") },
		"Released":  func(now time.Time) *store.Record { return Released(r, now, Release{}) },
	} {
		was, is := classOf(next(now), now), classOf(next(late), late)
		if is == abandoned {
			is = held
		}
		if is != was {
			t.Errorf("%s leads to %s, and to %s when the lease is over", name, was, is)
		}
	}
}
