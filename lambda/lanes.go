package lambda

import (
	"context"
	"errors"
	"sync"
)

// ErrNotTried matches errors of records that were held back, since an earlier
// one of their group has failed.
var ErrNotTried = errors.New("not tried: an earlier record of its group failed")

// all tries all records of an event and returns what became of each.
func (h *EachHandler[Ev, Rec, Re]) all(ctx context.Context, recs []Rec) []error {
	tasks := make([]task, len(recs))
	errs := make([]error, len(recs))
	for i, rec := range recs {
		tasks[i] = h.read(ctx, rec)
		errs[i] = ErrNotTried // until it is: a goroutine that ends early leaves nothing done
	}
	lanes := lanesOf(tasks)
	run := func(lane []int) {
		for _, i := range lane {
			errs[i] = h.try(ctx, recs[i], &tasks[i])
			if errs[i] != nil && tasks[i].group != "" {
				return
			}
		}
	}
	if h.batch.Concurrency <= 1 || len(lanes) == 1 {
		for _, lane := range lanes {
			run(lane)
		}
		return errs
	}
	queue := make(chan []int, len(lanes))
	for _, lane := range lanes {
		queue <- lane
	}
	close(queue)
	var wg sync.WaitGroup
	for range min(h.batch.Concurrency, len(lanes)) {
		wg.Go(func() {
			for lane := range queue {
				run(lane)
			}
		})
	}
	wg.Wait() // Lambda freezes what goes on after the return
	return errs
}

// lanesOf puts together what must be done one after the other: the records of a
// group, and those of one key, the later of which are then replays instead of
// in flight. Lanes begin in the event's order.
func lanesOf(tasks []task) [][]int {
	type id struct{ group, scope, key string }
	at := make(map[id]int, len(tasks))
	var lanes [][]int
	for i := range tasks {
		t := &tasks[i]
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
