package eventsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// longPoll is how long a read waits for a message. Pausing the source doesn't end this
// wait.
const longPoll = time.Second

// queueRun is a running [Queue]. Its method read gathers batches; its method deliver passes
// a batch to the function.
type queueRun struct {
	Queue
	filters  filters
	observer observer
	mapping  *Mapping
	slots    chan struct{} // a slot for each concurrent invocation
}

func (r *queueRun) read(ctx context.Context) {
	for failures := 0; ; {
		// Receive messages only when a slot is free.
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if r.mapping.gate.wait(ctx) != nil {
			return
		}
		batch, err := r.gather(ctx)
		if err != nil {
			r.observer.failed(ctx, err)
			failures++
		} else {
			failures = 0
		}
		if len(batch) == 0 {
			<-r.slots
			if !sleep(ctx, growing(r.PollEvery, failures, 50)) {
				return
			}
			continue
		}
		r.mapping.wg.Go(func() {
			defer func() { <-r.slots }()
			r.deliver(ctx, batch)
		})
	}
}

// queueRun.gather receives messages until there are enough for a batch, or until
// MaximumBatchingWindow is over. It stops earlier if a call fails, if the source is
// paused, or if the first poll brings no message.
func (r *queueRun) gather(ctx context.Context) ([]message, error) {
	var batch []message
	var due time.Time
	for bytes := 0; ; {
		wait := longPoll
		if len(batch) > 0 {
			if wait = min(wait, time.Until(due)); wait <= 0 {
				return batch, nil
			}
		}
		received, err := r.receive(ctx, min(receiveLimit, r.BatchSize-len(batch)), wait)
		if len(batch) == 0 {
			due = time.Now().Add(r.MaximumBatchingWindow)
		}
		for _, m := range received {
			bytes += len(m.json) + len(",")
		}
		batch = append(batch, received...)
		full := len(batch) >= r.BatchSize || bytes >= maxEventBytes
		if err != nil || full || len(batch) == 0 || r.mapping.gate.closed() {
			return batch, err
		}
		// ReceiveMessage can't wait for less than a second, so wait here.
		if len(received) == 0 && wait < longPoll && !sleep(ctx, min(r.PollEvery, wait)) {
			return nil, ctx.Err()
		}
	}
}

// queueRun.receive reads messages from the queue. It returns the messages that pass the
// filters, and deletes the others.
func (r *queueRun) receive(ctx context.Context, limit int, wait time.Duration) ([]message, error) {
	out, err := r.API.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    aws.String(r.URL),
		MaxNumberOfMessages:         int32(limit),
		WaitTimeSeconds:             int32(wait / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		return nil, fmt.Errorf("eventsource: receive from %s: %w", r.URL, err)
	}
	var wanted, unwanted []message
	for _, m := range out.Messages {
		if made := newMessage(r.ARN, m); r.filters.wants(made) {
			wanted = append(wanted, made)
		} else {
			unwanted = append(unwanted, made)
		}
	}
	r.observer.filtered(len(unwanted))
	r.remove(ctx, unwanted)
	return wanted, nil
}

// queueRun.deliver invokes the function with as many messages as fit into an event, and
// deletes the messages that succeeded. It gives back the messages that don't fit.
// Failed messages stay in the queue, and are delivered again after the visibility
// timeout. If the source is paused, deliver only gives back all messages.
func (r *queueRun) deliver(ctx context.Context, batch []message) {
	if r.mapping.gate.closed() {
		r.giveBack(ctx, batch)
		return
	}
	n := fitting(batch)
	r.giveBack(ctx, batch[n:])
	if batch = r.endLoops(ctx, batch[:n]); len(batch) == 0 {
		return
	}
	failed, ran, err := r.invoke(ctx, batch)
	if ctx.Err() != nil {
		return
	}
	r.observer.invoked(ctx, Invocation{Records: len(batch), Failed: len(failed), Err: err})
	done := batch[:0:0]
	for i, m := range batch {
		if _, isFailed := slices.BinarySearch(failed, i); !isFailed {
			done = append(done, m)
		}
	}
	r.remove(ctx, done)
	if !ran {
		// The function didn't run, for example because it was throttled. Wait, because
		// the next batch would probably fail, too.
		_ = sleep(ctx, growing(r.PollEvery, 10, 10))
	}
}

// endLoops deletes messages that are part of a loop, as Lambda does, and returns the
// other messages. A message is part of a loop if its trace header counts 16 or more
// invocations of the function.
func (r *queueRun) endLoops(ctx context.Context, batch []message) []message {
	if r.FunctionName == "" {
		return batch
	}
	var sound, loops []message
	for _, m := range batch {
		if lambdarun.Lineage(m.trace, r.FunctionName) < lambdarun.MaxLineage {
			sound = append(sound, m)
			continue
		}
		err := fmt.Errorf("eventsource: %s: message %s is dropped: %w", r.URL, m.id, lambdarun.ErrRecursive)
		if r.Dropped != nil {
			err = errors.Join(err, r.Dropped(ctx, m.body))
		}
		r.observer.failed(ctx, err)
		loops = append(loops, m)
	}
	r.remove(ctx, loops)
	return sound
}

// queueRun.invoke passes a batch to the function, and returns the positions of the
// messages that failed. If the function didn't run, ran is false, and all messages have
// failed.
func (r *queueRun) invoke(ctx context.Context, batch []message) (failed []int, ran bool, err error) {
	all := make([]int, 0, len(batch))
	ids := make([]string, 0, len(batch))
	records := make([][]byte, 0, len(batch))
	eldest := batch[0].trace // the trace header that counts the most invocations
	for i, m := range batch {
		all, ids, records = append(all, i), append(ids, m.id), append(records, m.json)
		if lambdarun.Lineage(m.trace, r.FunctionName) > lambdarun.Lineage(eldest, r.FunctionName) {
			eldest = m.trace
		}
	}
	response, err := r.Function.Invoke(lambdarun.Traced(ctx, eldest), event(records))
	if err != nil {
		_, ran = errors.AsType[*lambdarun.FunctionError](err)
		return all, ran, err
	}
	failed, err = failedItems(response, ids)
	switch {
	case !r.ReportBatchItemFailures:
		r.observer.ignored(ctx, len(failed))
		return nil, true, nil
	case err != nil:
		return all, true, err
	}
	return failed, true, nil
}

// fitting returns how many messages fit into an event, at least 1.
func fitting(batch []message) int {
	bytes := 0
	for n, m := range batch {
		bytes += len(m.json)
		if n > 0 && bytes+n > maxEventBytes { // n commas
			return n
		}
	}
	return len(batch)
}

// queueRun.remove deletes messages. A message that couldn't be deleted is delivered
// again.
func (r *queueRun) remove(ctx context.Context, batch []message) {
	for some := range slices.Chunk(batch, receiveLimit) {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(r.URL)}
		for i, m := range some {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.handle)})
		}
		out, err := r.API.DeleteMessageBatch(ctx, in)
		if err == nil {
			err = batchError(out.Failed)
		}
		if err != nil {
			r.observer.failed(ctx, fmt.Errorf("eventsource: delete from %s: %w", r.URL, err))
		}
	}
}

// giveBack makes messages visible at once. A message for which this fails becomes
// visible after its visibility timeout.
func (r *queueRun) giveBack(ctx context.Context, batch []message) {
	for some := range slices.Chunk(batch, receiveLimit) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(r.URL)}
		for i, m := range some {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.handle)})
		}
		out, err := r.API.ChangeMessageVisibilityBatch(ctx, in)
		if err == nil {
			err = batchError(out.Failed)
		}
		if err != nil {
			r.observer.failed(ctx, fmt.Errorf("eventsource: give back to %s: %w", r.URL, err))
		}
	}
}

// batchError returns an error with the first failure of a batch call. It returns nil if
// nothing failed.
func batchError(failed []types.BatchResultErrorEntry) error {
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d failed: %s: %s", len(failed), aws.ToString(failed[0].Code), aws.ToString(failed[0].Message))
}
