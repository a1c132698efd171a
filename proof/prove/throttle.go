package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// throttledFor is for how many time limits of a function its invocations are refused.
const throttledFor = 4

func throttled() Claim {
	return Claim{
		Name: "crash.throttled", Text: "an invocation that Lambda refuses loses nothing: of the API's function, and of the worker", Page: crashPage,
		Figure:    "a booking was done by request #, a job # s after the throttle",
		Cost:      Cost{Bookings: 2*tries + 1, Reads: waiting + 6*128, Calls: 20 * invocation20},
		OnStandIn: "a stand-in's functions have no reserved concurrency that can be changed", Examine: examineThrottled,
	}
}

// examineThrottled books a ride while the API's function is throttled, and another one while the worker is.
func examineThrottled(ctx context.Context, p *Place) (string, error) {
	refused, late := newBooking("refused", 930), newBooking("late", 931)
	last, requests := answer{}, 1
	err := p.throttle(ctx, p.Booker, func() error {
		a, err := p.book(ctx, refused)
		if err == nil && a.status < http.StatusInternalServerError && a.status != http.StatusTooManyRequests {
			err = fmt.Errorf("the API's function was not throttled: the answer is %d", a.status)
		}
		return err
	})
	for err == nil && last.status != http.StatusCreated && requests < tries {
		requests++
		if last, err = p.book(ctx, refused); err == nil && last.status != http.StatusCreated {
			err = sleep(ctx, p.Timeout)
		}
	}
	var heard answer
	if err == nil {
		err = p.throttle(ctx, p.Worker, func() (err error) {
			if heard, err = p.insist(ctx, late); err != nil {
				return err
			}
			if err = sleep(ctx, throttledFor*p.Timeout); err != nil {
				return err
			}
			w, err := p.look(ctx)
			if e, _ := w.of(late.place); err == nil && e.mails > 0 {
				err = errors.New("the worker was not throttled: the job is delivered")
			}
			return err
		})
	}
	if err != nil {
		return "", notSeen(err)
	}
	began := time.Now()
	w, _, err := p.arrive(ctx, p.patience(), func(w world) bool {
		e1, _ := w.of(refused.place)
		e2, _ := w.of(late.place)
		return e1.mails > 0 && e2.mails > 0
	})
	if err != nil {
		return "", notSeen(err)
	}
	took := time.Since(began)
	var wrong []string
	for _, a := range []answers{{booking: refused, last: last}, {booking: late, last: heard}} {
		e, ride := w.of(a.place)
		if bad := e.wrong(); bad != "" {
			wrong = append(wrong, bad)
		}
		if a.last.status != http.StatusCreated || !strings.Contains(a.last.body, ride) {
			wrong = append(wrong, fmt.Sprintf("the answer is %d: %.100s", a.last.status, a.last.body))
		}
	}
	if len(wrong) > 0 {
		return "", errors.New(strings.Join(wrong, "; "))
	}
	return fmt.Sprintf("a booking was done by request %d, a job %.0f s after the throttle", requests, took.Seconds()), nil
}

// throttle has Lambda refuse a function's invocations while work is done. The function gets its concurrency back
// whatever happens.
func (p *Place) throttle(ctx context.Context, function string, work func() error) (err error) {
	had, err := p.Lambda.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &function})
	if err != nil {
		return plainError(err)
	}
	if aws.ToInt32(had.ReservedConcurrentExecutions) == 0 {
		return fmt.Errorf("%s has no reserved concurrency", function)
	}
	defer func() { err = errors.Join(err, p.unthrottle(ctx, function, had.ReservedConcurrentExecutions)) }()
	if _, err := p.Lambda.PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{FunctionName: &function, ReservedConcurrentExecutions: aws.Int32(0)}); err != nil {
		return plainError(err)
	}
	if err := sleep(ctx, p.Timeout); err != nil { // until all of Lambda knows
		return err
	}
	return work()
}

// unthrottle tries again, also when the run was told to end.
func (p *Place) unthrottle(ctx context.Context, function string, concurrency *int32) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for try := range 4 {
		if _, err = p.Lambda.PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{FunctionName: &function, ReservedConcurrentExecutions: concurrency}); err == nil {
			return nil
		}
		if late := sleep(ctx, time.Duration(try+1)*p.Timeout/6); late != nil {
			break
		}
	}
	return fmt.Errorf("%s has no concurrency until the stack is removed: %w", function, plainError(err))
}
