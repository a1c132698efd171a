package sink

import (
	"context"

	"github.com/samekey/samekey/idem/jobs"
)

// batcher splits deliveries into calls.
type batcher struct {
	service service
	// ordered keeps the order of each group: no call has two deliveries of the same
	// group, since the service may refuse the first and accept the second.
	ordered bool
	size    func(jobs.Delivery) int
	// call sends a batch. It returns an error for the whole batch, or else a result
	// for each entry, nil for accepted entries.
	call func(ctx context.Context, batch []jobs.Delivery) (results, error)
	past evidence
}

func (b *batcher) deliver(ctx context.Context, all []jobs.Delivery) []error {
	r := newRound(b.service, &b.past, all)
	held := make(map[string]bool)
	left := make([]int, len(all))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		var now []int
		now, left = b.next(all, left)
		b.send(ctx, all, b.release(all, now, held, r.errs), r)
		for _, i := range now {
			held[all[i].Group] = r.errs[i] != nil // what is held back has an error
		}
	}
	return r.verdicts()
}

// next takes the deliveries of the next call from left.
func (b *batcher) next(all []jobs.Delivery, left []int) (now, later []int) {
	bytes := 0
	groups := make(map[string]bool)
	for n, i := range left {
		size := b.size(all[i])
		if len(now) == b.service.entries || len(now) > 0 && bytes+size > b.service.bytes {
			return now, append(later, left[n:]...)
		}
		if b.ordered && groups[all[i].Group] {
			later = append(later, i)
			continue
		}
		groups[all[i].Group] = true
		now, bytes = append(now, i), bytes+size
	}
	return now, later
}

// release holds back deliveries after a failure of their group.
func (b *batcher) release(all []jobs.Delivery, now []int, held map[string]bool, errs []error) []int {
	if !b.ordered {
		return now
	}
	var free []int
	for _, i := range now {
		if held[all[i].Group] {
			errs[i] = errHeldBack
		} else {
			free = append(free, i)
		}
	}
	return free
}

// send makes a call. If a delivery may be at fault for the call's error, each
// delivery is sent alone to find out which.
func (b *batcher) send(ctx context.Context, all []jobs.Delivery, now []int, r *round) {
	if len(now) == 0 || r.over(ctx, now...) {
		return
	}
	batch := make([]jobs.Delivery, len(now))
	for n, i := range now {
		batch[n] = all[i]
	}
	each, err := b.call(ctx, batch)
	if err == nil {
		r.down = each.down()
		for n, i := range now {
			r.note(i, each[n])
		}
		return
	}
	f := callFault(err)
	if len(now) > 1 && f.blame != ofSink {
		for _, i := range now {
			b.send(ctx, all, []int{i}, r)
		}
		return
	}
	r.down = f.blame == ofSink
	for _, i := range now {
		r.note(i, f)
	}
}
