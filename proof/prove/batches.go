package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/proof/prove/fault"
)

// neighbours are bookings whose records are to come in a batch with the one at which the worker dies.
const neighbours = 8

// givenUpWithin is how long a batch may be tried: eleven times, and each half of it. AWS doesn't say with which pauses.
const givenUpWithin = 10 * time.Minute

func batches() []Claim {
	return []Claim{
		{
			Name: "background.partial", Text: "of a batch that the worker can't do whole, the failed records come again, also that of a deleted record", Page: backgroundPage,
			Figure: "delivered # s after it was deleted", Cost: Cost{Bookings: tries + 1, Writes: 10, Reads: 2*waiting + 128}, Examine: examinePartial,
		},
		{
			Name: "background.bisected", Text: "a record at which the worker dies is given up to the bucket, alone; its neighbours' jobs are delivered", Page: backgroundPage,
			Figure: "# s later, of a batch of #", Cost: Cost{Bookings: neighbours * 3, Writes: 10, Reads: waiting, Calls: 800}, Examine: examineBisected,
		},
	}
}

// examinePartial deletes a record whose job was refused: only the stream has the job then, and it is refused once more.
func examinePartial(ctx context.Context, p *Place) (string, error) {
	refused := fault.Fault{Kind: fault.Refuse, Call: 2, Cell: "partial"}
	a, err := p.behind(ctx, "worker", refused, 904)
	if err = cmp.Or(err, a.err); err != nil {
		return "", notSeen(err)
	}
	if _, there, err := p.arrive(ctx, p.patience(), met(refused)); !there {
		return "", notSeen(errors.Join(err, errors.New("no job was refused")))
	}
	pk, err := p.waits(ctx)
	if err != nil {
		return "", notSeen(err)
	}
	if _, err := p.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &p.Records, Key: keyOf(pk)}); err != nil {
		return "", notSeen(plainError(err))
	}
	began := time.Now()
	refused.Call--
	partial := fault.Fault{Kind: fault.Partial, Cell: "worker"}
	w, _, err := p.arrive(ctx, p.patience(), func(w world) bool {
		e, _ := w.of(a.place)
		return e == complete && met(partial)(w) && met(refused)(w)
	})
	switch e, _ := w.of(a.place); {
	case err != nil:
		return "", notSeen(err)
	case !met(refused)(w):
		return "", notSeen(errors.New("the job of the deleted record was not refused"))
	case e != complete:
		return "", errors.New(e.wrong())
	case !met(partial)(w):
		return "", errors.New("no batch was answered in part")
	}
	return fmt.Sprintf("delivered %.0f s after it was deleted", time.Since(began).Seconds()), nil
}

func keyOf(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}
}

// waits finds the one record whose job waits, and for nobody.
func (p *Place) waits(ctx context.Context) (pk string, _ error) {
	return p.one(ctx, "keep = :jobs AND attribute_not_exists(waits)", map[string]types.AttributeValue{":jobs": &types.AttributeValueMemberS{Value: "jobs"}})
}

// one finds the one record for which a condition holds.
func (p *Place) one(ctx context.Context, condition string, values map[string]types.AttributeValue) (pk string, _ error) {
	all, err := p.some(ctx, 2, condition, values)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", errors.New("there is no such record")
	case len(all) > 1:
		return "", errors.New("there are several such records")
	}
	return text(all[0]["pk"]), nil
}

// some finds at least n records for which a condition holds, if there are so many.
func (p *Place) some(ctx context.Context, n int, condition string, values map[string]types.AttributeValue) (all []map[string]types.AttributeValue, _ error) {
	pages := dynamodb.NewScanPaginator(p.DB, &dynamodb.ScanInput{
		TableName: &p.Records, ConsistentRead: aws.Bool(true), FilterExpression: &condition, ExpressionAttributeValues: values,
	})
	for len(all) < n && pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, plainError(err)
		}
		all = append(all, page.Items...)
	}
	return all, nil
}

// examineBisected writes an item at which the worker dies, among bookings.
func examineBisected(ctx context.Context, p *Place) (string, error) {
	if p.API == "" {
		return "", notSeen(errNoAPI)
	}
	pk := fault.Poison + p.Stack
	began := time.Now()
	var wg sync.WaitGroup
	all := make([]answers, neighbours)
	for i := range all {
		all[i].booking = newBooking(fmt.Sprintf("neighbour-%d", i), 920+i)
		wg.Go(func() { all[i].last, all[i].err = p.insist(ctx, all[i].booking) })
	}
	err := p.put(ctx, pk, "open")
	defer func() { // neither the write nor the removal comes by the filters
		over := context.WithoutCancel(ctx)
		_ = p.put(over, pk, "over")
		_, _ = p.DB.DeleteItem(over, &dynamodb.DeleteItemInput{TableName: &p.Records, Key: keyOf(pk)})
	}()
	wg.Wait()
	for _, a := range all {
		err = errors.Join(err, a.err)
	}
	if err != nil {
		return "", notSeen(err)
	}
	var alone, ever bool
	for {
		if alone, ever, err = p.alone(ctx, pk); ever || err != nil || time.Since(began) > givenUpWithin {
			break
		}
		if err = sleep(ctx, 3*time.Second); err != nil {
			break
		}
	}
	if err != nil {
		return "", notSeen(err)
	}
	took := time.Since(began)
	w, done, err := p.arrive(ctx, p.patience(), func(w world) bool {
		for _, a := range all {
			if e, _ := w.of(a.place); e != complete {
				return false
			}
		}
		return true
	})
	most, _ := w.largest(fault.Poisoned)
	switch {
	case err != nil:
		return "", notSeen(err)
	case most == 0:
		return "", notSeen(errors.New("the item didn't come to the worker"))
	case !ever && p.Local:
		return "", fmt.Errorf("it isn't given up within %s", givenUpWithin)
	case !ever: // Lambda's pauses are longer, or the mapping is wrong
		return "", notSeen(fmt.Errorf("it isn't given up within %s", givenUpWithin))
	case !alone:
		return "", errors.New("others were given up with it")
	case !done:
		return "", errors.New("not all of its neighbours' jobs were delivered")
	case most == 1:
		return "", notSeen(errors.New("the item came in a batch of its own"))
	}
	return fmt.Sprintf("%.0f s later, of a batch of %d", took.Seconds(), most), nil
}

// put writes an item that is in a state, and is no record.
func (p *Place) put(ctx context.Context, pk, st string) error {
	item := keyOf(pk)
	item["st"] = &types.AttributeValueMemberS{Value: st}
	_, err := p.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.Records, Item: item})
	return plainError(err)
}

// alone looks for a record among the batches that were given up.
func (p *Place) alone(ctx context.Context, pk string) (alone, ever bool, _ error) {
	all, err := p.GivenUp(ctx)
	for _, raw := range all {
		var object struct{ Payload string }
		var event struct{ Records []json.RawMessage }
		if err := json.Unmarshal(raw, &object); err != nil {
			return false, false, err
		}
		if !strings.Contains(object.Payload, pk) {
			continue
		}
		if err := json.Unmarshal([]byte(object.Payload), &event); err != nil {
			return false, false, err
		}
		return len(event.Records) == 1, true, nil
	}
	return false, false, err
}

// largest is the largest number of a call at which a kind of fault was met, and when; 0 if at none.
func (w world) largest(kind fault.Kind) (n int, at time.Time) {
	for _, x := range w.provider {
		if met, ok := strings.CutPrefix(text(x["id"]), fault.Happened); ok {
			if f := fault.Parse(met); f.Kind == kind && f.Call > n {
				n, at = f.Call, timeOf(x)
			}
		}
	}
	return n, at
}
