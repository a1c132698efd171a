//go:build unix

package killsweep_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/testkit/prove"
	"github.com/samekey/samekey/internal/testkit/tap"
)

// mode is how a ride is made, and the calls that takes.
type mode struct {
	name  string
	calls []string
}

const charge = "/v1/charges"

var modes = []mode{
	{"a ride", []string{"PutItem", "TransactWriteItems", charge, "UpdateItem", "TransactWriteItems"}},
}

// harm is what is done to a process.
type harm string

const (
	killed  harm = "killed"
	stopped harm = "stopped past its lease"
)

// ending is how the request comes to its end.
type ending string

const (
	retried   ending = "the client retries"
	completes ending = "the client has gone"
)

// TestKillSweep harms the process of a ride at every call it makes, each in a run
// of its own: in make prove by each harm on each side of the call, with each ending, in
// make test by two or three of these eight. The runs wait more than they work, so many
// are under way at once: see TestMain.
func TestKillSweep(t *testing.T) {
	t.Parallel()
	b := openBackstage(t)
	type sweep struct {
		mode
		point
		ending
	}
	var all []sweep
	for _, m := range modes {
		t.Run(m.name+", not harmed", func(t *testing.T) {
			t.Parallel()
			harmless(t, b, m)
		})
		for _, p := range points(m.calls) {
			for _, end := range []ending{retried, completes} {
				all = append(all, sweep{m, p, end})
			}
		}
	}
	for _, s := range prove.Sample(t, 2*len(all)/7, all) { // a step of 3.5 meets every call, and all of the eight
		t.Run(s.mode.name+", "+s.point.name+", "+string(s.ending), func(t *testing.T) {
			t.Parallel()
			harmed(t, func() bool { return newRun(t, b, s.mode, s.ending).play(t, s.point) })
		})
	}
}

// harmless compares the calls of a ride whose process isn't harmed with those of m. On a
// busy machine a call may take so long that the SDK repeats it: then another ride is
// compared.
func harmless(t *testing.T, b *backstage, m mode) {
	t.Helper()
	var diff string
	for range 20 {
		r := newRun(t, b, m, retried)
		r.retry(t)
		var got []string
		for _, c := range r.tap.Calls() {
			got = append(got, c.Name)
		}
		if diff = cmp.Diff(m.calls, got); diff == "" {
			return
		}
	}
	t.Fatalf("calls of a ride (-want +got):\n%s", diff)
}

// point is where a process is harmed, and how.
type point struct {
	name string
	nth  int // call
	side tap.Side
	harm harm
}

func points(calls []string) (all []point) {
	for i, call := range calls {
		for _, side := range []tap.Side{tap.Before, tap.After} {
			for _, h := range []harm{killed, stopped} {
				all = append(all, point{fmt.Sprintf("%s %s call %d %s", h, side, i+1, strings.TrimPrefix(call, "/v1/")), i + 1, side, h})
			}
		}
	}
	return all
}

// play harms the process, has the request come to its end, and looks at what
// there is then. It returns false if no process was harmed.
func (r *run) play(t *testing.T, p point) bool {
	t.Helper()
	held := r.tap.Hold(p.nth, nil, p.side)
	defer held.Drop()
	first := r.inBackground(t)
	pid, ok := r.reached(t, held)
	if !ok {
		held.Drop()
		<-first
		r.end = retried
		r.finish(t)
		return false
	}
	// Nothing has been stored, and nobody but the client knows of it.
	unheard := p.nth == 1 && p.side == tap.Before

	if p.harm == killed {
		kill(t, r.function, pid, held)
		if a := <-first; a.status < http.StatusInternalServerError {
			t.Errorf("the client of the dead process gets %d %s", a.status, a.body)
		}
		if unheard && r.end == completes {
			if l, _ := r.look(t); r.record(t) != nil || l != (left{}) {
				t.Errorf("there is %+v of what was never heard of", l)
			}
			r.end = retried
		}
		r.finish(t)
		return true
	}

	signal(t, pid, syscall.SIGSTOP)
	if unheard && r.end == completes {
		sleep(t.Context(), timeout+margin) // nobody does anything until it wakes
	} else {
		r.finish(t)
	}
	before := r.record(t)
	held.GoOn() // what was on its way arrives
	signal(t, pid, syscall.SIGCONT)
	var late reply
	select {
	case late = <-first:
	case <-time.After(patience):
		t.Fatal("the process that was woken doesn't come to its end")
	}
	final := r.finish(t)
	if late.status == http.StatusCreated && late.body != final.body {
		t.Errorf("the process that was woken answers %s, the others %s", late.body, final.body)
	}
	if before != nil {
		if diff := cmp.Diff(before, r.record(t)); diff != "" {
			t.Errorf("the process that was woken has changed the record (-before +after):\n%s", diff)
		}
	}
	return true
}

// finish has the request come to its end, and checks that there is one of
// everything, and that the answer replays.
func (r *run) finish(t *testing.T) reply {
	t.Helper()
	var first reply
	if r.end == retried {
		first = r.retry(t)
	}
	r.settled(t)
	l, ride := r.look(t)
	for begin := time.Now(); l.Mails == 0 && time.Since(begin) < patience; l, ride = r.look(t) {
		sleep(t.Context(), 50*time.Millisecond) // the queue has it
	}
	if diff := cmp.Diff(whole, l); diff != "" {
		t.Errorf("there is (-want +got):\n%s", diff)
	}
	again := r.retry(t)
	if again.header.Get("Idempotent-Replayed") != "true" || !strings.Contains(again.body, `"id":"`+ride+`"`) {
		t.Errorf("got %v %s, want the answer for %s again", again.header, again.body, ride)
	}
	if r.end == retried && again.body != first.body {
		t.Errorf("the client got %s, and then %s", first.body, again.body)
	}
	return again
}
