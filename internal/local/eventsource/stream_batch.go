package eventsource

import "time"

// streamBatch gathers records until there are enough for a batch or the window
// is over.
type streamBatch struct {
	size   int
	window time.Duration

	records []streamRecord
	due     time.Time // when the batch's window ends
}

func (b *streamBatch) add(r streamRecord) {
	if len(b.records) == 0 {
		b.due = time.Now().Add(b.window)
	}
	b.records = append(b.records, r)
}

// streamBatch.next removes a batch from b and returns it, or returns nil if there is
// none. Unless all is true, a batch must be full, or its window must be over.
func (b *streamBatch) next(all bool) []streamRecord {
	n, full := b.fit()
	if n == 0 || !full && !all && time.Now().Before(b.due) {
		return nil
	}
	batch := b.records[:n:n]
	b.records = b.records[n:]
	b.due = time.Now().Add(b.window)
	return batch
}

// streamBatch.fit returns how many records fit into a batch, and whether the batch is
// full. One record always fits, even if it is too large.
func (b *streamBatch) fit() (n int, full bool) {
	bytes := 0
	for n < len(b.records) && n < b.size {
		bytes += len(b.records[n].json)
		if n > 0 && bytes+n > maxEventBytes { // n commas
			return n, true
		}
		n++
	}
	return n, n == b.size
}

// streamBatch.wait returns how long to pause before the next read: until a batch is
// due, but at most for the duration poll.
func (b *streamBatch) wait(poll time.Duration) time.Duration {
	if len(b.records) == 0 {
		return poll
	}
	return min(poll, time.Until(b.due))
}
