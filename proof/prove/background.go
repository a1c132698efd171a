package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/proof/prove/fault"
)

const backgroundPage = "docs/operate/background.md"

func background() []Claim {
	all := []Claim{
		{
			Name: "background.completion", Text: "the worker completes a booking whose process was killed, and whose client is gone", Page: backgroundPage,
			Figure: "# s after the kill", Cost: Cost{Bookings: 2, Reads: waiting}, Examine: examineCompletion,
		},
		{
			Name: "background.filter", Text: "the stream brings the worker nothing that it has no need of", Page: backgroundPage, Figure: "a job came within # s, and it didn't",
			Cost: Cost{Bookings: tries + 1, Writes: 4, Reads: waiting}, Examine: examineFilter,
		},
		{
			Name: "background.parked", Text: "a job that is always refused is on the people's list", Page: backgroundPage, Figure: "# s after the answer, and # refusals",
			Cost: Cost{Bookings: tries + 1, Writes: 2, Reads: 401*listing + 3*128}, Examine: examineParked,
		},
	}
	all = append(all, batches()...) // while the parked job's alarm begins to ring
	return append(
		all, sweep(), ringing(),
		Claim{
			Name: "background.redriven", Text: "a parked job that people redrive is delivered once", Page: backgroundPage, Figure: "# s after the redrive",
			Cost: Cost{Writes: 20, Reads: waiting}, Examine: examineRedriven,
		},
	)
}

// waiting are the units of a wait for effects: it looks once in a second, for 90 of them in an account.
const waiting = 100 * 3 * 128

// listing are the units of a look at the people's list.
const listing = 20

// parkedPlace is that of the booking whose job is parked.
const parkedPlace = 903

// parkedWithin is for how long a job may be tried before it is parked: its pauses double from ten seconds.
const parkedWithin = 5 * time.Minute

// examineFilter writes an item that the filters keep away, and sees a job come by the same stream.
func examineFilter(ctx context.Context, p *Place) (string, error) {
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: fault.Unneeded}}
	if _, err := p.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.Records, Item: key}); err != nil {
		return "", notSeen(plainError(err))
	}
	defer func() { // it goes with the stack; until then a sweep would report it
		_, _ = p.DB.DeleteItem(context.WithoutCancel(ctx), &dynamodb.DeleteItemInput{TableName: &p.Records, Key: key})
	}()
	began, b := time.Now(), newBooking("filter", 902)
	if _, err := p.insist(ctx, b); err != nil {
		return "", notSeen(err)
	}
	came := met(fault.Fault{Kind: fault.Came, Cell: "worker"})
	w, done, err := p.arrive(ctx, p.patience(), func(w world) bool { e, _ := w.of(b.place); return e == complete })
	if done { // the two are in different shards
		w, _, err = p.arrive(ctx, 5*time.Second, came)
	}
	switch {
	case err != nil:
		return "", notSeen(err)
	case came(w):
		return "", errors.New("an item without a state came to the worker")
	case !done:
		return "", notSeen(errors.New("no job came either"))
	}
	return fmt.Sprintf("a job came within %.0f s, and it didn't", time.Since(began).Seconds()), nil
}

// listed are the entries of parked jobs in the people's list.
func (p *Place) listed(ctx context.Context) (all []stream.Entry, _ error) {
	table, err := dynamo.New(p.DB, p.Records)
	if err != nil {
		return nil, err
	}
	for e, err := range stream.NewWaiting(p.DB, table, func(o *stream.WaitingOptions) { o.Only = []state.Reason{state.ReasonParked} }).All(ctx) {
		if err != nil {
			return nil, plainError(err)
		}
		all = append(all, e)
	}
	return all, nil
}

// examineParked leaves the job parked, for the alarm and the redrive.
func examineParked(ctx context.Context, p *Place) (string, error) {
	before, err := p.listed(ctx)
	if err != nil {
		return "", notSeen(err)
	}
	a, err := p.behind(ctx, "worker", fault.Fault{Kind: fault.Refuse, Call: state.MaxRefusals, Cell: "parked"}, parkedPlace)
	if err = cmp.Or(err, a.err); err != nil {
		return "", notSeen(err)
	}
	began := time.Now()
	for {
		all, err := p.listed(ctx)
		all = slices.DeleteFunc(all, func(e stream.Entry) bool {
			return slices.ContainsFunc(before, func(old stream.Entry) bool { return old.PK == e.PK && old.ID == e.ID })
		})
		switch {
		case err != nil:
			return "", notSeen(err)
		case len(all) > 0:
			p.parked, p.parkedAt = &all[0], p.now()
			return fmt.Sprintf("%.0f s after the answer, and %d refusals", time.Since(began).Seconds(), p.parked.Tries), nil
		case time.Since(began) > parkedWithin:
			return p.unparked(ctx, a)
		}
		if err := sleep(ctx, time.Second); err != nil {
			return "", notSeen(err)
		}
	}
}

// unparked says why a job isn't on the list.
func (p *Place) unparked(ctx context.Context, a answers) (string, error) {
	w, err := p.look(ctx)
	if err != nil {
		return "", notSeen(err)
	}
	if !met(fault.Fault{Kind: fault.Refuse, Call: 1, Cell: a.fault.Cell})(w) {
		return "", notSeen(fmt.Errorf("the job was not refused %d times in %s", a.fault.Call, parkedWithin))
	}
	return "", fmt.Errorf("it was refused %d times, and isn't on the list", a.fault.Call)
}

func examineRedriven(ctx context.Context, p *Place) (string, error) {
	table, err := dynamo.New(p.DB, p.Records)
	if p.parked == nil {
		err = errors.Join(errors.New("no job is parked"), err)
	}
	if err != nil {
		return "", notSeen(err)
	}
	began := p.now()
	n, err := stream.Redrive(ctx, table, p.parked.PK, p.parked.ID, "prove")
	refused := errors.Is(err, jobs.ErrMoved) || errors.Is(err, store.ErrConflict)
	switch {
	case err != nil && !refused:
		return "", notSeen(plainError(err))
	case n != 1:
		return "", errors.Join(fmt.Errorf("%d jobs were redriven", n), err)
	}
	p.redrivenAt = began
	w, done, err := p.arrive(ctx, p.patience(), func(w world) bool { e, _ := w.of(parkedPlace); return e == complete })
	if err != nil {
		return "", notSeen(err)
	}
	if e, _ := w.of(parkedPlace); !done {
		return "", errors.New(e.wrong())
	}
	return fmt.Sprintf("%.0f s after the redrive", p.now().Sub(began).Seconds()), nil
}

func examineCompletion(ctx context.Context, p *Place) (string, error) {
	b := newBooking("abandoned", 900)
	b.fault = fault.Fault{Kind: fault.After, Call: 2, Cell: "abandoned"}
	_, err := p.book(ctx, b)
	if dark(err) {
		return "", notSeen(err)
	}
	w, done, err := p.arrive(ctx, p.patience(), func(w world) bool { e, _ := w.of(b.place); return e == complete })
	if err != nil {
		return "", notSeen(err)
	}
	killed, met := w.happened(b.fault)
	switch e, _ := w.of(b.place); {
	case !met:
		return "", notSeen(errors.New("the process was not killed"))
	case !done:
		return "", fmt.Errorf("after %s: %s", p.patience(), e.wrong())
	}
	return fmt.Sprintf("%.0f s after the kill", p.now().Sub(killed).Seconds()), nil
}
