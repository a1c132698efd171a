package sink

import (
	"context"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/samekey/samekey/idem/jobs"
)

// batcher splits deliveries into calls.
type batcher struct {
	service service
	// ordered keeps the order of each group: a call has at most one delivery of a
	// group, because the service may refuse the first of two deliveries and accept the
	// second.
	ordered bool
	size    func(jobs.Delivery) int
	// call sends a batch. If the whole call failed, call returns an error. Otherwise it
	// returns the result of each delivery.
	call func(ctx context.Context, batch []jobs.Delivery) (results, error)
	past evidence
}

func (b *batcher) deliver(ctx context.Context, all []jobs.Delivery) []error {
	r := newRound(b.service, &b.past, all)
	failed := make(map[string]bool) // by group
	left := make([]int, len(all))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		var now []int
		now, left = b.next(all, left)
		b.send(ctx, all, b.free(all, now, failed, r.errs), r)
		for _, i := range now {
			failed[all[i].Group] = r.errs[i] != nil // true also for a job that is held back
		}
	}
	return r.verdicts()
}

// batcher.next chooses the deliveries of the next call from left, the remaining
// deliveries. now is for the next call, later for the calls after it.
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

// batcher.free takes the indexes of a call's deliveries (the parameter now), and returns
// those that may be sent. If ordered is true, free holds back the deliveries of groups
// that have failed.
func (b *batcher) free(all []jobs.Delivery, now []int, failed map[string]bool, errs []error) []int {
	if !b.ordered {
		return now
	}
	var left []int
	for _, i := range now {
		if failed[all[i].Group] {
			errs[i] = errHeldBack
		} else {
			left = append(left, i)
		}
	}
	return left
}

// batcher.send makes a call. If the call fails and one of several deliveries may be the
// cause, send sends each delivery alone, to find out which.
func (b *batcher) send(ctx context.Context, all []jobs.Delivery, now []int, r *round) {
	if len(now) == 0 || r.stops(ctx, now...) {
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

// results has the result of each entry of a call: a fault, or nil if the service
// accepted the entry.
type results []*fault

// results.set records the result of an entry. id is the entry's number.
func (r results) set(id *string, f *fault) {
	if i, err := strconv.Atoi(aws.ToString(id)); err == nil && i >= 0 && i < len(r) {
		r[i] = f
	}
}

var errUntold = errors.New("the answer doesn't tell")

// unanswered returns n results that blame the sink. The result of an entry is replaced
// later, if the service's answer mentions the entry.
func unanswered(n int) results {
	all := make(results, n)
	for i := range all {
		all[i] = &fault{ofSink, errUntold}
	}
	return all
}

// results.down reports whether the sink is at fault for all entries.
func (r results) down() bool {
	for _, f := range r {
		if f == nil || f.blame != ofSink {
			return false
		}
	}
	return true
}
