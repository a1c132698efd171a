package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/base/defaults"
)

// Recovery is how long a client waits for its answer after its request's process has
// been killed.
type Recovery struct {
	Samples int    `json:"samples"`
	Answer  Spread `json:"to_the_answer_ns"`
	// Bound is the rest of the lease and the longest pause of a client that obeys
	// Retry-After, in ns.
	Bound    float64 `json:"bound_ns"`
	Deadline float64 `json:"deadline_ns"` // of the killed invocation
	Margin   float64 `json:"lease_margin_ns"`
}

const (
	killedAfter = 3 * time.Second // the time of the invocation that is killed
	slowest     = time.Second     // Retry-After is in whole seconds
)

// measureRecovery kills n attempts at the begin of their handlers. The client retries as
// it is told.
func measureRecovery(ctx context.Context, db *dynamotest.DB, n int) (r Recovery, _ error) {
	b, err := newBed(ctx, db)
	if err != nil {
		return r, err
	}
	margin := defaults.LeaseMargin
	r = Recovery{Samples: n, Bound: float64(killedAfter + margin + slowest), Deadline: float64(killedAfter), Margin: float64(margin)}
	options := func(o *idem.Options) { o.Function, o.Logger = "rides", quiet }
	client := idem.New(b.store, options)
	times, err := inTurns(n, func(i int) (float64, error) {
		req := keyed("/orders")
		req.Header.Set(idem.KeyHeader, fmt.Sprintf("key-%032d", i))
		var killed time.Time
		for killed.IsZero() { // a busy machine may leave no time to begin
			process := idemtest.Faulty(b.store, nil)
			invocation, end := context.WithTimeout(ctx, killedAfter)
			_, _ = idem.New(process, options).Serve(invocation, req, func(context.Context) (idem.Response, error) {
				process.Crash() // nothing that comes after reaches the table
				killed = time.Now()
				return idem.Response{}, errors.New("killed")
			})
			end()
			if err := ctx.Err(); err != nil {
				return 0, err
			}
		}
		for {
			attempt, end := context.WithTimeout(ctx, time.Minute)
			res, err := client.Serve(attempt, req, creates(order(answerSize)))
			end()
			switch pause, atoi := strconv.Atoi(res.Header.Get("Retry-After")); {
			case err != nil:
				return 0, err
			case res.Status == created("").Status:
				return float64(time.Since(killed).Nanoseconds()), nil
			case atoi != nil:
				return 0, fmt.Errorf("%d without Retry-After: %w", res.Status, atoi)
			default:
				time.Sleep(time.Duration(pause) * time.Second) //nolint:forbidigo // as the client is told
			}
		}
	})
	if err != nil {
		return r, err
	}
	r.Answer = times[0]
	return r, nil
}
