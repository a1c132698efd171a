package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/proof/prove/fault"
)

const (
	sweeps        = 60 // at most
	scheduled     = 2  // passes of which the worker's own schedule may have done a part
	writersAtOnce = 8
)

func sweep() Claim {
	return Claim{
		Name: "background.sweep", Text: "a sweep of the whole table finds the job and the operation that the stream lost", Page: backgroundPage,
		Figure:  "among # records, # s after they were lost, by # runs",
		Cost:    Cost{Bookings: tries + 2, Writes: 110_000, Reads: waiting + 128 + 20_000, Calls: sweeps*invocation20 + 500}, // with the worker's reads, and its invocations for what the stream loses
		Examine: examineSweep,
	}
}

// examineSweep has the stream lose all that comes while two bookings are made, one of which is killed, among many
// records that have ended.
func examineSweep(ctx context.Context, p *Place) (string, error) {
	undo, err := p.plant(ctx, fault.Lost, fault.Fault{})
	if err != nil {
		return "", notSeen(err)
	}
	defer undo()
	job, open := newBooking("lost-job", 905), newBooking("lost-operation", 906)
	open.fault = fault.Fault{Kind: fault.After, Call: 2, Cell: "lost"}
	_, err = p.insist(ctx, job)
	if err == nil {
		if _, err = p.book(ctx, open); !dark(err) {
			err = nil // nobody answers
		}
	}
	began := time.Now()
	if err == nil {
		err = errors.Join(p.fill(ctx), sleep(ctx, 2*p.Timeout)) // the stream loses them meanwhile
	}
	if err != nil {
		return "", notSeen(err)
	}
	w, err := p.look(ctx)
	if err != nil {
		return "", notSeen(err)
	}
	e1, _ := w.of(job.place)
	e2, _ := w.of(open.place)
	if e1.mails != 0 || e2.charges != 0 || !met(open.fault)(w) {
		return "", notSeen(errors.New("the stream didn't lose them, or nobody was killed"))
	}
	var passes passes
	for run := range sweeps {
		report, err := p.sweepOnce(ctx)
		if err != nil {
			return "", notSeen(err)
		}
		passes.add(report, time.Now())
		if w, err = p.look(ctx); err != nil {
			return "", notSeen(err)
		}
		e1, _ = w.of(job.place)
		e2, _ = w.of(open.place)
		switch over, err := passes.over(e1, e2, p.Swept, time.Now(), 2*p.patience()); {
		case err != nil:
			return "", err
		case over:
			return fmt.Sprintf("among %d records, %.0f s after they were lost, by %d runs", passes.most, time.Since(began).Seconds(), run+1), nil
		}
		if err := sleep(ctx, 2*time.Second); err != nil {
			return "", notSeen(err)
		}
	}
	return "", notSeen(fmt.Errorf("after %d runs, of the job: %s; of the operation: %s", sweeps, e1.wrong(), e2.wrong()))
}

// passes are what the sweeps of an examination have seen of the table.
type passes struct {
	seen, most int       // records: by the pass that is under way, by the largest that is done
	done       int       // passes
	first      time.Time // when the first one was done
}

func (s *passes) add(r stream.Report, now time.Time) {
	if s.seen += r.Scanned; !r.Complete {
		return
	}
	if s.done++; s.done == 1 {
		s.first = now
	}
	s.seen, s.most = 0, max(s.most, s.seen)
}

// over reports whether the job and the operation are done, and a pass has seen the whole table. What a pass has found is
// done within patience. The worker's own schedule may do a part of a pass or two.
func (s *passes) over(job, operation effects, records int, now time.Time, patience time.Duration) (bool, error) {
	both := job == complete && operation == complete
	switch {
	case both && s.most > records:
		return true, nil
	case both && s.done > scheduled:
		return false, fmt.Errorf("a pass has seen %d records, of more than %d", s.most, records)
	case !both && s.done > 0 && now.Sub(s.first) > patience:
		return false, fmt.Errorf("of the job: %s; of the operation: %s", job.wrong(), operation.wrong())
	}
	return false, nil
}

// sweepOnce asks the worker for a sweep, as its schedule does.
func (p *Place) sweepOnce(ctx context.Context) (r stream.Report, _ error) {
	out, err := p.invoke(ctx, p.Worker, `{"source":"aws.scheduler","task":"sweep"}`)
	if err != nil {
		return r, err
	}
	if p.found == nil {
		p.found = map[state.Reason]time.Time{}
	}
	err = json.Unmarshal(out, &r)
	for reason, t := range r.ByReason {
		if _, known := p.found[reason]; !known && t.Count > 0 {
			p.found[reason] = p.now()
		}
	}
	return r, err
}

// invokedWithin is more than the worker's timeout, with a start.
const invokedWithin = 40 * time.Second

// invoke lets an invocation end that has begun, also if ctx ends: the stack is removed afterwards, with its logs.
func (p *Place) invoke(ctx context.Context, function, payload string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), invokedWithin)
	defer cancel()
	out, err := p.Lambda.Invoke(ctx, &lambda.InvokeInput{FunctionName: &function, Payload: []byte(payload)})
	switch {
	case err != nil:
		return nil, plainError(err)
	case out.FunctionError != nil:
		return nil, fmt.Errorf("%s: %.200s", *out.FunctionError, out.Payload)
	}
	return out.Payload, nil
}

// fill writes copies of a record that has ended.
func (p *Place) fill(ctx context.Context) error {
	const names = "v1#plain#"
	all, err := p.some(ctx, 1, "begins_with(pk, :names) AND st = :done AND attribute_not_exists(keep)", map[string]types.AttributeValue{
		":names": &types.AttributeValueMemberS{Value: names}, ":done": &types.AttributeValueMemberS{Value: "done"},
	})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("no record has ended")
	}
	ended := all[0]
	const each, aSecond = 25, 3000 // a table takes 4000 before it has grown
	todo, errs := make(chan int), make([]error, writersAtOnce)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := range todo {
				if errs[i] != nil {
					continue
				}
				var batch []types.WriteRequest
				for range n {
					item := maps.Clone(ended)
					item["pk"] = &types.AttributeValueMemberS{Value: names + rand.Text()}
					batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
				}
				errs[i] = errors.Join(p.writeAll(ctx, batch), sleep(ctx, writersAtOnce*each*time.Second/aSecond))
			}
		})
	}
	for left := p.Swept; left > 0; left -= each {
		todo <- min(left, each)
	}
	close(todo)
	wg.Wait()
	return errors.Join(errs...)
}

func (p *Place) writeAll(ctx context.Context, batch []types.WriteRequest) error {
	for try := range tries {
		out, err := p.DB.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{p.Records: batch}})
		if err != nil {
			return plainError(err)
		}
		if batch = out.UnprocessedItems[p.Records]; len(batch) == 0 {
			return nil
		}
		if err := sleep(ctx, time.Duration(try+1)*100*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("DynamoDB doesn't take all items")
}
