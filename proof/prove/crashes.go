package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/proof/prove/fault"
)

// Calls that a function makes: of a booking, claim, ride, charge at the provider and its
// commit, end; of the worker for a job, delivery and acknowledgement; of the consumer, claim,
// mail, end.
const (
	callsOfAPI      = 5
	callsOfWorker   = 2
	callsOfConsumer = 3
)

const crashPage = "docs/use/crashes.md"

// clean is the figure of crashes.
const clean = "# faults met, 0 lost, 0 doubled, 0 wrong"

// atOnce are the clients of an examination.
const atOnce = 4

func crashes() []Claim {
	kinds := map[fault.Kind]string{
		fault.Before: "killed before it", fault.After: "killed behind it", fault.Lose: "its answer lost", fault.Hang: "it hangs until the time limit",
	}
	all := make([]Claim, 0, 8)
	for i, kind := range []fault.Kind{fault.Before, fault.After, fault.Lose, fault.Hang} {
		all = append(all, Claim{
			Name: "crash.api." + string(kind), Text: "a booking loses nothing, doubles nothing and gets one answer, at each of its calls: " + kinds[kind], Page: crashPage, Figure: clean,
			Cost: Cost{Bookings: callsOfAPI * (tries + 1), Reads: waiting},
			Examine: func(ctx context.Context, p *Place) (string, error) {
				return p.crashAPI(ctx, kind, callsOfAPI, 100*(i+1))
			},
		})
	}
	return append(
		all,
		Claim{
			Name: "crash.api.answered", Text: "a process that ends between its answer and the next event loses nothing", Page: crashPage, Figure: clean,
			Cost:    Cost{Bookings: tries + 1, Reads: waiting},
			Examine: func(ctx context.Context, p *Place) (string, error) { return p.crashAPI(ctx, fault.Answered, 1, 500) },
		},
		Claim{
			Name: "crash.api.memory", Text: "a process that runs out of memory loses nothing", Page: crashPage, Figure: clean,
			Cost: Cost{Bookings: tries + 1, Reads: waiting}, OnStandIn: "a process of a stand-in has the machine's memory",
			Examine: func(ctx context.Context, p *Place) (string, error) { return p.crashAPI(ctx, fault.Memory, 1, 600) },
		},
		Claim{
			Name: "crash.worker", Text: "a worker that is killed at any of its calls delivers each job once", Page: crashPage, Figure: clean,
			Cost: Cost{Bookings: 2 * callsOfWorker * (tries + 1), Writes: 2 * 2 * callsOfWorker, Reads: 4 * waiting},
			Examine: func(ctx context.Context, p *Place) (string, error) {
				return p.crashBehind(ctx, "worker", callsOfWorker, 700)
			},
		},
		Claim{
			Name: "crash.consumer", Text: "a consumer that is killed at any of its calls does each job once", Page: crashPage, Figure: clean,
			Cost: Cost{Bookings: 2 * callsOfConsumer * (tries + 1), Writes: 2 * 2 * callsOfConsumer, Reads: 4 * waiting},
			Examine: func(ctx context.Context, p *Place) (string, error) {
				return p.crashBehind(ctx, "receipts", callsOfConsumer, 800)
			},
		},
		throttled(),
	)
}

// answers are a booking with what its client has heard.
type answers struct {
	booking
	last answer
	err  error
}

// crashAPI books a ride for each call, which meets the fault at that call.
func (p *Place) crashAPI(ctx context.Context, kind fault.Kind, calls, place int) (string, error) {
	all := make([]answers, calls)
	free := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range all {
		b := newBooking(fmt.Sprintf("%s-%d", kind, i+1), place+i)
		b.fault = fault.Fault{Kind: kind, Call: i + 1, Cell: "api"}
		all[i].booking = b
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			all[i].last, all[i].err = p.insist(ctx, b)
		})
	}
	wg.Wait()
	return p.count(ctx, all)
}

// crashBehind books rides whose job's worker or consumer meets a fault.
func (p *Place) crashBehind(ctx context.Context, role string, calls, place int) (string, error) {
	var all []answers
	for call := range calls {
		for _, kind := range []fault.Kind{fault.Before, fault.After} {
			a, err := p.behind(ctx, role, fault.Fault{Kind: kind, Call: call + 1, Cell: role}, place+len(all))
			if err != nil {
				return "", err
			}
			all = append(all, a)
			if _, _, err := p.arrive(ctx, p.patience(), met(a.fault)); err != nil {
				return "", notSeen(err)
			}
		}
	}
	return p.count(ctx, all)
}

// behind books a ride while a fault waits for the worker or the consumer.
func (p *Place) behind(ctx context.Context, role string, f fault.Fault, place int) (answers, error) {
	if _, err := p.plant(ctx, fault.Waiting+role, f); err != nil {
		return answers{}, notSeen(err)
	}
	a := answers{booking: newBooking(fmt.Sprintf("%s-%s-%d", role, f.Kind, f.Call), place)}
	a.last, a.err = p.insist(ctx, a.booking)
	a.fault = f
	if dark(a.err) {
		return a, notSeen(a.err)
	}
	return a, nil
}

// plant has a fault wait in the provider's table. undo takes it away.
func (p *Place) plant(ctx context.Context, id string, f fault.Fault) (undo func(), _ error) {
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
	item := maps.Clone(key)
	item["fault"] = &types.AttributeValueMemberS{Value: f.String()}
	if _, err := p.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.Provider, Item: item}); err != nil {
		return nil, plainError(err)
	}
	return func() {
		_, _ = p.DB.DeleteItem(context.WithoutCancel(ctx), &dynamodb.DeleteItemInput{TableName: &p.Provider, Key: key})
	}, nil
}

// met is there when a fault has happened.
func met(f fault.Fault) func(world) bool {
	return func(w world) bool { _, happened := w.happened(f); return happened }
}

// patience is for how long jobs and abandoned bookings may be under way: a message is seen
// again after six time limits, and Lambda waits a while before it reads a queue again.
func (p *Place) patience() time.Duration { return 30*time.Second + 12*p.Timeout }

// count waits until all effects are there, and counts them. Each fault has to be met, or
// nothing was shown.
func (p *Place) count(ctx context.Context, all []answers) (string, error) {
	for _, a := range all {
		if dark(a.err) || a.err != nil && ctx.Err() != nil {
			return "", notSeen(a.err)
		}
	}
	w, _, err := p.arrive(ctx, p.patience(), func(w world) bool {
		for _, a := range all {
			if e, _ := w.of(a.place); e.mails == 0 || e.charges == 0 {
				return false
			}
		}
		return true
	})
	if err != nil {
		return "", notSeen(err)
	}
	var wrong, unmet []string
	for _, a := range all {
		cell := strings.TrimSpace(a.fault.String())
		say := func(format string, args ...any) { wrong = append(wrong, cell+": "+fmt.Sprintf(format, args...)) }
		e, ride := w.of(a.place)
		if bad := e.wrong(); bad != "" {
			say("%s", bad)
		}
		switch {
		case a.err != nil:
			say("%v", a.err)
		case a.last.status != http.StatusCreated || !strings.Contains(a.last.body, ride):
			say("the answer is %d: %.100s", a.last.status, a.last.body)
		default:
			if again, err := p.book(ctx, booking{key: a.key, place: a.place}); err != nil || again != a.last {
				say("the replay is %d, %.100s (%v)", again.status, again.body, err)
			}
		}
		if !met(a.fault)(w) {
			unmet = append(unmet, cell)
		}
	}
	switch {
	case len(wrong) > 0:
		return "", errors.New(strings.Join(wrong, "; "))
	case len(unmet) > 0:
		return "", notSeen(fmt.Errorf("these faults were never met: %s", strings.Join(unmet, ", ")))
	}
	return strings.ReplaceAll(clean, "#", strconv.Itoa(len(all))), nil
}
