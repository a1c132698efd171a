package check

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// settles is the maximum number of requests that settled sends to get a final answer.
const settles = 10

// examination.concurrent sends a request with a new key several times at once.
func (e *examination) concurrent(ctx context.Context) error {
	final, err := e.race(ctx, e.keyed(e.key("concurrent")), "concurrent", e.counts)
	if err == nil && e.firm && final.ok() && string(final.body) == string(e.first.body) {
		e.note("The answers to two different keys have the same body, so no body can show whether a request ran again.")
	}
	return err
}

// examination.race sends c several times at once, then repeats c until there is a final
// answer, and returns that answer. The parameter rule is the prefix of the names of the
// rules that race examines. Two answers with different bodies prove a second run if
// counts returns true for both answers.
func (e *examination) race(ctx context.Context, c call, rule string, counts func(*answer) bool) (*answer, error) {
	answers, errs := make([]*answer, e.opt.Racers), make([]error, e.opt.Racers)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range e.opt.Racers {
		wg.Go(func() {
			<-start
			answers[i], errs[i] = e.once(ctx, c)
		})
	}
	close(start)
	wg.Wait()
	final, err := e.settled(ctx, c)
	if err != nil {
		return nil, err
	}
	bodies, overlapped, lost := make(map[string]struct{}), false, 0
	for i, a := range answers {
		switch {
		case errs[i] != nil:
			lost++ // not reported as a fault of the API, because the network can lose answers
		case a.status == http.StatusConflict:
			overlapped = true
			e.blame(a, "idempotency_in_flight")
			e.judgeRetryAfter(a)
		case a.busy():
			e.judgeRetryAfter(a)
		case a.status == http.StatusAccepted && final.status != http.StatusAccepted:
			overlapped = true
		case a.ok() && counts(a):
			bodies[string(a.body)] = struct{}{}
		case a.ok():
		default:
			e.breaks(rule+"-failed", fmt.Sprintf("one of %d simultaneous requests got %d", len(answers), a.status))
		}
	}
	if lost == len(answers) {
		return nil, errs[0]
	}
	switch {
	case !final.ok():
		e.breaks(rule+"-failed", fmt.Sprintf("after the simultaneous requests, the same request got %d", final.status))
	case counts(final):
		bodies[string(final.body)] = struct{}{}
	}
	if len(bodies) > 1 {
		e.breaks(rule+"-twice", fmt.Sprintf("%d different answers to %d equal requests", len(bodies), len(answers)))
	}
	if !overlapped {
		e.note("No simultaneous request got 409 or 202, which say that another request is in flight. Perhaps the API is fast, or lets requests wait.")
	}
	return final, nil
}

// examination.counts reports whether a's body may be evidence of a second run: two
// different bodies prove two runs. A replay's body is no evidence if the API's replays
// differ in bytes from first answers. If the API doesn't replay the first answer, no
// body is evidence.
func (e *examination) counts(a *answer) bool {
	return e.exact || e.firm && a.header.Get(replayedHeader) != "true"
}

// examination.settled sends c until the answer is final.
func (e *examination) settled(ctx context.Context, c call) (a *answer, err error) {
	for range settles {
		a, err = e.once(ctx, c)
		if err != nil || a.status != http.StatusConflict && !a.busy() {
			return a, err
		}
		e.judgeRetryAfter(a)
		if err := pause(ctx, retryAfter(a)); err != nil {
			return nil, e.explain(ctx, err)
		}
	}
	return a, nil
}

// judgeRetryAfter checks Retry-After of an answer that asks for a retry.
func (e *examination) judgeRetryAfter(a *answer) {
	e.mu.Lock()
	e.busy = true
	e.mu.Unlock()
	if d, ok := toldWait(a); !ok || d < -time.Minute {
		e.breaks("retry-after", fmt.Sprintf("an answer with status %d has the Retry-After %q", a.status, a.header.Get("Retry-After")))
	}
}
