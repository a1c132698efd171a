package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// operation is one logical request: all attempts of one RoundTrip.
type operation struct {
	t      *Transport
	req    *http.Request // the caller's request, never changed
	passes bool          // whether the request goes to the base transport unchanged

	key   string // the key as it is sent; "" without a key
	body  *body
	entry Entry     // the operation's entry in the journal; zero if there is none
	until time.Time // end of the key's lifetime; zero without a key

	attempts int
	before   int           // 1 if the journal had the operation before this request; 0 if it had not, or after a redirect
	waits    int           // number of retries after a 409 with Retry-After, without those that count towards MaxRetries
	waited   time.Duration // total wait before the retries that waits counts
	sent     time.Time     // time at which the most recent attempt was sent
	heard    http.Header   // headers of the most recent attempt's answer, even of a torn answer; nil without an answer
	aboutKey bool          // whether the most recent answer is about the key, not about the operation
	unknown  bool          // whether the operation may have been carried out by this request, or by an earlier request with its name
	maybe    bool          // whether the operation may have been carried out by another request with this key: a request in progress (409), the redirected request, or an earlier request of the caller
}

// operation.begin classifies the request and prepares it for repetition. Nothing is
// sent before begin has succeeded.
func (o *operation) begin() error {
	own, set, err := callersKey(o.req.Header, o.t.opt.KeyHeader)
	keyed := own != "" || !set && o.t.keyed(o.req.Method)
	_, named := operationOf(o.req)
	o.key, o.maybe = own, own != ""
	o.unknown = named && (keyed || err != nil) // until the journal says that the operation is new
	if err := checkRequest(o.req); err != nil {
		return err
	}
	if cause := cancelled(o.req); cause != nil {
		return cause
	}
	if err != nil {
		return err
	}
	if !keyed && !set && !isIdempotent(o.req.Method) {
		o.passes = true
		return nil
	}
	must := keyed && (o.t.opt.MaxRetries > 0 || named)
	if o.body, err = rewindable(o.req, o.t.opt.maxBuffer, must); err != nil {
		return err
	}
	if keyed {
		if err := o.chooseKey(own); err != nil {
			return err
		}
	}
	o.t.budget.request()
	return nil
}

// chooseKey chooses the first of these keys that exists: the journal entry's key, the
// caller's key, the redirected request's key, or a new key.
func (o *operation) chooseKey(own string) error {
	moved := redirectedKey(o.req, o.t.opt.KeyHeader)
	if o.key == "" {
		o.key, o.maybe = moved, moved != ""
	}
	used, made := o.key, o.key == ""
	if made {
		o.key = o.t.newKey()
	}
	switch err := o.remember(own, moved); {
	case errors.Is(err, ErrExpired): // keep the expired key, since Error.Key reports it
		return err
	case err != nil:
		o.key = used // drop a newly made key, since it was never sent
		return err
	case o.unknown: // resumed
		o.before = 1
		o.tell(o.t.opt.Hooks.Resumed, Event{})
	case made:
		o.tell(o.t.opt.Hooks.KeyMade, Event{})
	}
	return nil
}

// operation.run sends the request until an attempt's outcome can be returned.
func (o *operation) run() (*http.Response, error) {
	for {
		resp, abort, err := o.attempt()
		why, retry := o.judge(resp, err)
		if !retry {
			return o.end(resp, err, why)
		}
		wait, no := o.mayRetry(resp)
		if no != "" {
			return o.end(resp, err, no)
		}
		if err == nil {
			err = fmt.Errorf("status %d", resp.StatusCode)
			discard(resp, abort)
		}
		o.tell(o.t.opt.Hooks.Retry, Event{Wait: wait, Reason: why, Err: err})
		if cause := pause(o.req, wait); cause != nil {
			return nil, o.failed(fmt.Errorf("%w, while waiting to retry after: %w", cause, err))
		}
		if o.isOver(0) { // the machine slept during the wait, or its clock was set
			return nil, o.gaveUp(fmt.Errorf("%w: while waiting to retry after: %w", ErrExpired, err), reasonLifetime)
		}
	}
}

// operation.judge decides whether to retry after an attempt. The string why is the
// reason for the decision, or empty if the outcome can't be retried at all.
func (o *operation) judge(resp *http.Response, err error) (why string, retry bool) {
	if why, retry = o.retriable(resp, err); retry && o.ignored() {
		return reasonIgnored, false
	}
	return why, retry
}

// operation.retriable decides like judge, but assumes that the server doesn't ignore
// keys.
func (o *operation) retriable(resp *http.Response, err error) (why string, retry bool) {
	switch {
	case cancelled(o.req) != nil:
		return "", false
	case errors.Is(err, errAttemptTimeout):
		return reasonTimeout, true
	case err != nil && (errors.Is(err, ErrBody) || permanent(o.req, err)):
		return "", false
	case err != nil:
		return reasonNetwork, true
	case resp.StatusCode < http.StatusBadRequest:
		return "", false
	}
	again := retried(resp.StatusCode)
	yes, no := shouldRetry(resp.Header)
	switch {
	case yes:
		return reasonAsked, true
	case no && again:
		return reasonRefused, false
	case again && !isReplay(resp): // a replay isn't retried: a retry would get the same replay
		return reasonStatus, true
	}
	return "", false
}

// mayRetry returns the wait before the next attempt, or the reason not to retry.
func (o *operation) mayRetry(resp *http.Response) (wait time.Duration, no string) {
	now := time.Now()
	asked, ok := retryAfter(o.heard, now)
	wait = max(backOff(o.attempts, o.t.opt.InitialDelay, o.t.opt.MaxDelay), spread(asked, o.t.opt.InitialDelay))
	if ok && o.inFlight(resp) && o.waited+wait <= maxRetryAfter {
		o.waits++
		o.waited += wait
	}
	deadline, limited := o.req.Context().Deadline()
	switch {
	case o.attempts-o.waits > o.t.opt.MaxRetries:
		return 0, reasonRetries
	case o.body.open == nil:
		return 0, reasonBody
	case asked > maxRetryAfter:
		return 0, reasonRetryAfter
	case o.isOver(wait):
		return 0, reasonLifetime
	case limited && !now.Add(wait).Before(deadline):
		return 0, reasonDeadline
	case !o.t.budget.retry():
		return 0, reasonBudget
	}
	return wait, ""
}

// operation.ignored reports whether a retry would run the operation again, because the
// server has said that it ignored the key. For a method that is idempotent by
// definition, ignored returns false, since the operation may run again. The server's
// header counts even if the rest of the answer was lost.
func (o *operation) ignored() bool { return isKeyIgnored(o.heard) && !isIdempotent(o.req.Method) }

// inFlight reports whether another attempt may hold the key: a keyed request got a 409.
// Waiting for the other attempt doesn't count towards MaxRetries, since the wait can be
// long. If the other attempt has died, the key stays taken until the lease ends, which
// may take many times Retry-After.
func (o *operation) inFlight(resp *http.Response) bool {
	return o.key != "" && resp != nil && resp.StatusCode == http.StatusConflict
}

// isOver reports whether the key's lifetime ends before the duration wait has passed.
func (o *operation) isOver(wait time.Duration) bool {
	return !o.until.IsZero() && !o.t.wall().Add(wait+lifetimeMargin).Before(o.until)
}

// operation.end returns the final attempt's outcome. If a retry could have helped, the
// string why is the reason for not retrying.
func (o *operation) end(resp *http.Response, err error, why string) (*http.Response, error) {
	if err != nil {
		return nil, o.gaveUp(err, why)
	}
	if why != "" {
		o.tell(o.t.opt.Hooks.GaveUp, Event{Status: resp.StatusCode, Reason: why})
	}
	resp.Header.Del(ResultHeader) // only this package may set the header, not the server
	switch {
	case isReplay(resp): // also a 404: a replayed 404 is the operation's stored answer, and stays a 404
		o.tell(o.t.opt.Hooks.Replayed, Event{Status: resp.StatusCode})
	case o.deletedBefore(resp):
		_ = resp.Body.Close()
		noContent(resp)
		o.tell(o.t.opt.Hooks.DeletedBefore, Event{Status: resp.StatusCode})
	case o.key != "" && !o.settles(resp) &&
		(resp.StatusCode == http.StatusAccepted || resp.StatusCode >= http.StatusBadRequest && (o.unknown || o.maybe)):
		resp.Header.Set(ResultHeader, OutcomeUnknown)
	}
	return resp, nil
}

func (o *operation) gaveUp(err error, why string) error {
	if cause := cancelled(o.req); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if why != "" {
		o.tell(o.t.opt.Hooks.GaveUp, Event{Reason: why, Err: err})
	}
	e := o.failed(err)
	e.GaveUp = why
	return e
}

func (o *operation) failed(err error) *Error {
	key := cmp.Or(o.key, redirectedKey(o.req, o.t.opt.KeyHeader))
	unknown := o.unknown || o.maybe || o.req.Response != nil // a redirected request may have been carried out: a 303 says so
	return &Error{Key: key, Attempts: o.attempts, Unknown: unknown, Err: err}
}
