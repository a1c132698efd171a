package sink

import (
	"context"

	"github.com/samekey/samekey/idem"
)

// The limits of one call of SQS, SNS and EventBridge. A queue or topic may take
// more bytes; one message over the limit is sent alone, for it to judge.
const (
	maxEntries = 10
	maxBytes   = 256 << 10
)

// batcher cuts deliveries into calls.
type batcher struct {
	service string
	// ordered keeps the order of each group: no call has two of one group, since
	// the first may be refused and the second taken.
	ordered bool
	size    func(idem.Delivery) int
	// call sends a batch: an error for the whole of it, or else one for each
	// entry, nil for those that were taken.
	call func(ctx context.Context, batch []idem.Delivery) ([]error, error)
}

func (b *batcher) deliver(ctx context.Context, all []idem.Delivery) []error {
	errs := make([]error, len(all))
	held := make(map[string]bool)
	left := make([]int, len(all))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		var now []int
		now, left = b.next(all, left)
		if ctx.Err() != nil {
			for _, i := range now {
				errs[i] = outOfTime(ctx)
			}
			continue
		}
		now = b.release(all, now, held, errs)
		b.send(ctx, all, now, errs)
		for _, i := range now {
			held[all[i].Group] = held[all[i].Group] || errs[i] != nil
		}
	}
	return errs
}

// next takes the deliveries of one call off what is left.
func (b *batcher) next(all []idem.Delivery, left []int) (now, later []int) {
	bytes := 0
	groups := make(map[string]bool)
	for n, i := range left {
		size := b.size(all[i])
		if len(now) == maxEntries || len(now) > 0 && bytes+size > maxBytes {
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

// release holds back what comes after a failure of its group.
func (b *batcher) release(all []idem.Delivery, now []int, held map[string]bool, errs []error) []int {
	if !b.ordered {
		return now
	}
	free := now[:0]
	for _, i := range now {
		if held[all[i].Group] {
			errs[i] = errHeldBack
		} else {
			free = append(free, i)
		}
	}
	return free
}

// send makes one call. Where what was sent is to blame, each is sent alone, to
// find out which.
func (b *batcher) send(ctx context.Context, all []idem.Delivery, now []int, errs []error) {
	if len(now) == 0 {
		return
	}
	batch := make([]idem.Delivery, len(now))
	for n, i := range now {
		batch[n] = all[i]
	}
	each, err := b.call(ctx, batch)
	switch {
	case err == nil:
		each = idem.Delivered(each, len(now))
		for n, i := range now {
			errs[i] = each[n]
		}
	case len(now) > 1 && refused(err):
		for _, i := range now {
			b.send(ctx, all, []int{i}, errs)
		}
	default:
		for _, i := range now {
			errs[i] = fault(b.service, err)
		}
	}
}
