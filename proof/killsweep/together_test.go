//go:build unix

package killsweep_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/prove"
	"github.com/samekey/samekey/internal/testkit/tap"
	"github.com/samekey/samekey/lambda/completer"
)

// together is a request that its first process, its client and a completer all
// bring to its end at the same time.
const together ending = "all at once"

// TestAllAtOnce stops the process of a ride at a call, waits until its lease is
// over, and then lets go at the same moment: the process wakes and its call goes
// on, its client retries, and the completer resumes the ride. make prove plays each call
// four times: who is first is up to the machine.
func TestAllAtOnce(t *testing.T) { //nolint:tparallel // in make prove, which has as many processes as the machine takes
	if !prove.All() {
		t.Parallel()
	}
	b := openBackstage(t)
	type meeting struct {
		mode
		point
	}
	var all []meeting
	for range prove.Some(1, 4) {
		for _, m := range modes {
			for _, p := range points(m.calls) {
				// Before its first call there is no record, and nobody else who knows of it.
				if p.harm == stopped && (p.nth > 1 || p.side == tap.After) {
					all = append(all, meeting{m, p})
				}
			}
		}
	}
	for round, at := range prove.Sample(t, len(all)/3, all) {
		t.Run(fmt.Sprintf("%d %s, call %d %s", round, at.mode.name, at.nth, at.side), func(t *testing.T) {
			t.Parallel()
			newRun(t, b, at.mode, together).playTogether(t, at.point)
		})
	}
}

func (r *run) playTogether(t *testing.T, p point) {
	t.Helper()
	held := r.tap.Hold(p.nth, nil, p.side)
	defer held.Drop()
	first := r.inBackground(t)
	// On a slow machine a request may be answered before it comes to that call: it
	// is sent again then. Whatever comes about, all that is checked has to hold.
	for here := false; !here; {
		select {
		case <-held.Reached():
			here = true
		case <-first:
			first = r.inBackground(t)
		case <-time.After(patience):
			t.Fatal("the call never came")
		}
	}
	r.named(t)
	at := r.function.Running()
	for _, process := range at {
		signal(t, process.PID, syscall.SIGSTOP)
	}
	rec := r.record(t)
	if rec != nil {
		sleep(t.Context(), time.Until(rec.Lease))
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	var original reply
	wg.Go(func() {
		held.GoOn() // what was on its way arrives
		for _, process := range at {
			if err := syscall.Kill(process.PID, syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		}
		original = <-first
	})
	var resumed error
	wg.Go(func() { resumed = r.resume(ctx, rec) })
	late := r.retry(t)
	wg.Wait()
	if resumed != nil {
		t.Error(resumed)
	}
	if original.status == http.StatusCreated && original.body != late.body {
		t.Errorf("the process that was woken answers %s, the others %s", original.body, late.body)
	}
	if final := r.finish(t); final.body != late.body {
		t.Errorf("the client got %s, and then %s", late.body, final.body)
	}
}

// resume does as a completer does with tickets for what it saw of the record,
// until there is nothing to do any more.
func (r *run) resume(ctx context.Context, rec *store.Record) error {
	for rec != nil && rec.State == store.Open {
		o := completer.Invoke(invoker{r.function}, "rides").Resume(ctx, jobs.TicketFor(rec))
		if strings.HasPrefix(o.Error, "invoke ") { // the function has not answered
			return errors.New(o.Error)
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
		var err error
		if rec, err = r.store.Load(ctx, r.pk); err != nil {
			return err
		}
	}
	return nil
}
