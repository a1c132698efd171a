package lambda

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/redact"
)

// course runs the records of one event: the records of a lane one after the other, and several
// lanes at a time.
type course[Ev, Rec, Re any] struct {
	h     *EachHandler[Ev, Rec, Re]
	recs  []Rec
	tasks []*task
	errs  []error // errors of records that were not begun; at the end, errors of all records

	workers int
	end     time.Time // latest end of a handler's context; zero: no deadline
	mu      sync.Mutex
	waiting [][]int // lanes that no worker has taken
	behind  []int   // for each waiting lane, the number of records in this lane and all later lanes
	longest []int   // for each waiting lane, the number of records in the longest of this lane and all later lanes
}

// EachHandler.all tries every record of an event. It returns the records' errors, and how many
// handlers are still running.
func (h *EachHandler[Ev, Rec, Re]) all(ctx context.Context, recs []Rec) (errs []error, overdue int) {
	c := &course[Ev, Rec, Re]{h: h, recs: recs, tasks: make([]*task, len(recs)), errs: make([]error, len(recs))}
	for i, rec := range recs {
		c.tasks[i] = h.read(ctx, rec)
	}
	if deadline, ok := ctx.Deadline(); ok {
		c.end = deadline.Add(-defaults.Reserve)
	}
	var wg sync.WaitGroup
	for _, lane := range c.queue(lanesOf(c.tasks)) { // each of the first lanes has its own worker
		wg.Go(func() {
			for t := c.turn(lane); lane != nil; lane, t = c.next() {
				c.run(ctx, lane, t)
			}
		})
	}
	wg.Wait()
	overdue = c.report(ctx)
	c.notTried(ctx)
	return c.errs, overdue
}

// lanesOf groups the records that must run one after the other: the records of a group, or, outside
// of groups, the records with the same key. So a second record with the same key isn't refused as
// in flight, and is a replay if the first succeeded. Lanes are in the order of their first records.
func lanesOf(tasks []*task) [][]int {
	type id struct{ group, scope, key string }
	at := make(map[id]int, len(tasks))
	var lanes [][]int
	for i, t := range tasks {
		id := id{group: t.group}
		if t.group == "" {
			id.scope, id.key = t.req.Scope, t.req.Key
		}
		n, known := at[id]
		if known = known && (t.group != "" || t.req.Key != ""); !known {
			at[id] = len(lanes)
			lanes = append(lanes, []int{i})
			continue
		}
		lanes[n] = append(lanes[n], i)
	}
	return lanes
}

// course.queue returns the first lane of each worker, and queues the others.
func (c *course[Ev, Rec, Re]) queue(lanes [][]int) (first [][]int) {
	c.workers = c.h.batch.Concurrency
	if c.workers == 0 {
		c.workers = defaultConcurrency
	}
	c.workers = min(c.workers, len(lanes))
	c.waiting = lanes[c.workers:]
	c.behind, c.longest = make([]int, len(c.waiting)+1), make([]int, len(c.waiting)+1)
	for i := len(c.waiting) - 1; i >= 0; i-- {
		c.behind[i] = c.behind[i+1] + len(c.waiting[i])
		c.longest[i] = max(c.longest[i+1], len(c.waiting[i]))
	}
	return lanes[:c.workers]
}

// course.next takes the next waiting lane; nil if there is none.
func (c *course[Ev, Rec, Re]) next() ([]int, turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return nil, turn{}
	}
	lane := c.waiting[0]
	c.waiting, c.behind, c.longest = c.waiting[1:], c.behind[1:], c.longest[1:]
	return lane, c.turnOf(lane)
}

// course.turn returns the [turn] of a lane that begins without waiting.
func (c *course[Ev, Rec, Re]) turn(lane []int) turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turnOf(lane)
}

func (c *course[Ev, Rec, Re]) turnOf(lane []int) turn {
	return turn{own: len(lane), behind: c.behind[0], longest: c.longest[0], workers: c.workers}
}

// course.run handles the records of a lane until the lane's time is over, or until a
// failure holds back the later records.
func (c *course[Ev, Rec, Re]) run(ctx context.Context, lane []int, t turn) {
	end := c.end
	if now := time.Now(); !end.IsZero() {
		end = now.Add(share(end.Sub(now), t))
	}
	for n, i := range lane {
		task := c.tasks[i]
		if ctx.Err() != nil || !end.IsZero() && time.Until(end) < least {
			c.skip(lane[n:], noTime(ctx))
			return
		}
		task.lane, task.limit = end, c.h.batch.RecordTimeout
		c.begin(ctx, i)
		ended := task.await(grace)
		if !ended || task.came != nil && task.group != "" {
			why := errHeldBack
			if task.group == "" {
				why = errSameKey
			}
			c.skip(lane[n+1:], why)
			return
		}
		if !task.ran() && n+1 < len(lane) { // the handler did not run, so an earlier event may have done this record, and also the next
			c.tasks[lane[n+1]].req.ReadFirst = true
		}
	}
}

// course.begin tries a record in its own goroutine, so that run can stop waiting for a
// handler that hangs.
func (c *course[Ev, Rec, Re]) begin(ctx context.Context, i int) {
	t := c.tasks[i]
	t.begun, t.done = make(chan struct{}), make(chan struct{})
	t.came = errGone // unless try returns
	go func() {
		defer close(t.done)
		defer func() { c.came(ctx, i) }()
		t.came = c.h.try(ctx, c.recs[i], t)
	}()
}

// course.came is called when the work on a record ends. It reports the record's failure, or logs
// that an overdue handler has returned.
func (c *course[Ev, Rec, Re]) came(ctx context.Context, i int) {
	switch t := c.tasks[i]; {
	case t.givenUp():
		slog.WarnContext(ctx, "an overdue handler has returned", "record", c.h.batch.ID(c.recs[i]), "error", redact.Error(t.came))
	case t.came != nil && !t.untried(t.came):
		c.h.tell(ctx, c.h.batch.Failed, "Batch.Failed", c.recs[i], t.came)
	}
}

func (c *course[Ev, Rec, Re]) skip(rest []int, why error) {
	for _, i := range rest {
		c.errs[i] = why
	}
}

// course.report collects the results of the records that were begun, and returns how
// many handlers are still running. If a handler has returned but its result isn't
// stored yet, report waits. The engine limits this wait, so that time for the answer
// remains.
func (c *course[Ev, Rec, Re]) report(ctx context.Context) (left int) {
	for i, t := range c.tasks {
		if t.done == nil {
			continue
		}
		select {
		case <-t.done:
		default:
			if t.giveUp() {
				left++
				c.errs[i] = ErrOverdue
				c.h.tell(ctx, c.h.batch.Failed, "Batch.Failed", c.recs[i], ErrOverdue)
				continue
			}
			<-t.done
		}
		c.errs[i] = t.came
	}
	return left
}

// notTried reports the records that were not tried; the source will deliver them again.
func (c *course[Ev, Rec, Re]) notTried(ctx context.Context) {
	n, first, hook := 0, 0, c.h.batch.NotRun
	for i, err := range c.errs {
		if !c.tasks[i].untried(err) {
			continue
		}
		if n++; n == 1 {
			first = i
		}
		if hook != nil {
			c.h.tell(ctx, hook, "Batch.NotRun", c.recs[i], err)
		}
	}
	if n > 0 && hook == nil {
		slog.WarnContext(ctx, "records were not tried and will be delivered again", "records", n, "of", len(c.recs),
			"first", c.h.batch.ID(c.recs[first]), "error", redact.Error(c.errs[first]))
	}
}
