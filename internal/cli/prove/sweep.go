package prove

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/internal/cli/prove/fault"
)

const (
	sweeps        = 60 // at most
	writersAtOnce = 8
)

func sweep() Claim {
	return Claim{
		Name: "background.sweep", Text: "a sweep of the whole table finds the job and the operation that the stream lost", Page: backgroundPage,
		Figure:  "among # records, # s after they were lost, by # runs",
		Cost:    Cost{Bookings: tries + 2, Writes: 110_000, Reads: 100*3*128 + 128 + 20_000, Calls: sweeps*invocation20 + 500}, // with the worker's reads, and its invocations for what the stream loses
		Examine: examineSweep,
	}
}

// examineSweep has the stream lose all that comes while two bookings are made, one of which is killed, among many
// records that have ended.
func examineSweep(ctx context.Context, p *Place) (string, error) {
	lost := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fault.Lost}}
	if _, err := p.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.Provider, Item: lost}); err != nil {
		return "", notSeen(plainError(err))
	}
	defer func() {
		_, _ = p.DB.DeleteItem(context.WithoutCancel(ctx), &dynamodb.DeleteItemInput{TableName: &p.Provider, Key: lost})
	}()
	job, open := newBooking("lost-job", 905), newBooking("lost-operation", 906)
	open.fault = fault.Fault{Kind: fault.After, Call: 2, Cell: "lost"}
	_, err := p.insist(ctx, job)
	if err == nil {
		if _, err = p.book(ctx, open); !dark(err) && ctx.Err() == nil {
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
	e1, _ := w.of(job.place)
	e2, _ := w.of(open.place)
	if err != nil || e1.mails != 0 || e2.charges != 0 || !met(open.fault)(w) {
		return "", notSeen(errors.Join(err, errors.New("the stream didn't lose them, or nobody was killed")))
	}
	most, seen := 0, 0
	for run := range sweeps {
		report, err := p.sweepOnce(ctx)
		if err != nil {
			return "", notSeen(err)
		}
		if seen += report.Scanned; report.Complete {
			most, seen = max(most, seen), 0
		}
		if w, err = p.look(ctx); err != nil {
			return "", notSeen(err)
		}
		e1, _ = w.of(job.place)
		e2, _ = w.of(open.place)
		switch {
		case e1 == complete && e2 == complete && most > p.Swept:
			return fmt.Sprintf("among %d records, %.0f s after they were lost, by %d runs", most, time.Since(began).Seconds(), run+1), nil
		case e1 == complete && e2 == complete && report.Complete:
			return "", fmt.Errorf("a pass has seen %d records, of more than %d", most, p.Swept)
		case time.Since(began) > 2*p.patience() && most > 0:
			return "", fmt.Errorf("of the job: %s; of the operation: %s", e1.wrong(), e2.wrong())
		}
		if err := sleep(ctx, 2*time.Second); err != nil {
			return "", notSeen(err)
		}
	}
	return "", fmt.Errorf("after %d runs, of the job: %s; of the operation: %s", sweeps, e1.wrong(), e2.wrong())
}

// sweepOnce asks the worker for a sweep, as its schedule does.
func (p *Place) sweepOnce(ctx context.Context) (r stream.Report, _ error) {
	out, _, err := p.invoke(ctx, p.Worker, `{"source":"aws.scheduler","task":"sweep"}`)
	if err != nil {
		return r, err
	}
	if p.found == nil {
		p.found = map[stream.Reason]bool{}
	}
	err = json.Unmarshal(out, &r)
	for reason, t := range r.ByReason {
		p.found[reason] = p.found[reason] || t.Count > 0
	}
	return r, err
}

// fill writes copies of a record that has ended.
func (p *Place) fill(ctx context.Context) error {
	const names = "v1#plain#"
	var ended map[string]types.AttributeValue
	pages := dynamodb.NewScanPaginator(p.DB, &dynamodb.ScanInput{
		TableName: &p.Records, ConsistentRead: aws.Bool(true), FilterExpression: aws.String("begins_with(pk, :names) AND st = :done AND attribute_not_exists(keep)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":names": &types.AttributeValueMemberS{Value: names}, ":done": &types.AttributeValueMemberS{Value: "done"}},
	})
	for ended == nil && pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return plainError(err)
		}
		if len(page.Items) > 0 {
			ended = page.Items[0]
		}
	}
	if ended == nil {
		return errors.New("no record has ended")
	}
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
