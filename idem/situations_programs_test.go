package idem_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
)

type handler = func(context.Context) (idem.Response, error)

func resumable(o *idem.Options)   { o.Resumable = true }
func firstTry(o *idem.Options)    { o.MaxTries = 1 }
func redelivered(r *idem.Request) { r.Redelivered = true }

// changing is the first release of a change of scope: keys are claimed under the former one.
func changing(claims bool) func(*idem.Options) {
	return func(o *idem.Options) { o.Former = &idem.Former{ScopeRoute: true, Claims: claims} }
}

func observes(o *idem.Options) { o.Mode = idem.ModeObserve }

var aRequest = idem.Request{
	Key: "a-random-key-of-an-order", Identity: idem.Identity{Kind: "jwt", Subject: "s"},
	Method: "POST", Route: "POST /rides", Path: "/rides", Body: []byte("a long body"),
}

// sends sends the request, with changes.
func sends(fn handler, changes ...func(*idem.Request)) func(*stage) string {
	return func(s *stage) string { return s.send(s.e, fn, changes...) }
}

func (s *stage) send(e *idem.Engine, fn handler, changes ...func(*idem.Request)) string {
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
	defer cancel()
	r := aRequest
	for _, change := range changes {
		change(&r)
	}
	return received(e.Do(ctx, r, s.counting(fn)))
}

func (s *stage) counting(fn handler) handler {
	return func(ctx context.Context) (idem.Response, error) {
		s.mu.Lock()
		s.runs++
		s.mu.Unlock()
		return fn(ctx)
	}
}

// resumes completes the operation of the record.
func resumes(fn handler) func(*stage) string {
	return func(s *stage) string {
		ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
		defer cancel()
		return received(s.e.Resume(ctx, s.ticket(), func(ctx context.Context, r *idem.Request) (idem.Response, error) {
			if string(r.Body) != "a long body" {
				return idem.Response{}, fmt.Errorf("the request is %q", r.Body)
			}
			return s.counting(fn)(ctx)
		}))
	}
}

func (s *stage) ticket() jobs.Ticket { return jobs.TicketFor(one(s.table.MemoryStore)) }

// decides is an operator's decision.
func decides(decide func(context.Context, *idem.Engine, jobs.Ticket) error) func(*stage) string {
	return func(s *stage) string {
		ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
		defer cancel()
		if err := decide(ctx, s.e, s.ticket()); err != nil {
			return received(idem.Result{}, err)
		}
		return "decided"
	}
}

// sentBefore has the request sent before, by a program that lives on; its lease is over.
func sentBefore(fn handler, optFns ...func(*idem.Options)) func(*stage) {
	return func(s *stage) {
		_ = s.send(idem.New(s.table, append(s.opts, optFns...)...), fn)
		time.Sleep(10 * time.Minute) //nolint:forbidigo // virtual
	}
}

// usedHere has another request sent before with the same key, in the scope of the last release.
func usedHere(s *stage) {
	e := idem.New(s.table, append(s.opts, func(o *idem.Options) { o.Former = nil })...)
	_ = s.send(e, paid, func(r *idem.Request) { r.Body = []byte("another one") })
}

// diesAfterIt has it sent by a program that dies at the end of fn.
func wasKilled(fn handler, optFns ...func(*idem.Options)) func(*stage) {
	return func(s *stage) {
		dying := idemtest.Faulty(s.table, nil)
		_ = s.send(idem.New(dying, append(s.opts, optFns...)...), func(ctx context.Context) (idem.Response, error) {
			_, _ = fn(ctx)
			dying.Crash()
			return idem.Response{}, errors.New("died")
		})
		time.Sleep(10 * time.Minute) //nolint:forbidigo // virtual
	}
}

// holds has it sent by a program that dies, and whose lease goes on.
func holds(fn handler) func(*stage) {
	return func(s *stage) {
		dying := idemtest.Faulty(s.table, nil)
		_ = s.send(idem.New(dying, s.opts...), func(ctx context.Context) (idem.Response, error) {
			_, _ = fn(ctx)
			dying.Crash()
			return idem.Response{}, errors.New("died")
		})
	}
}

func all(steps ...func(*stage)) func(*stage) {
	return func(s *stage) {
		for _, step := range steps {
			step(s)
		}
	}
}

func bodiesGone(s *stage) { clear(s.table.bodies) }

func forgets(s *stage) {
	if _, err := s.e.Forget(s.ctx, s.ticket(), "ann", idem.Loss{Held: true, Work: true, Jobs: true}); err != nil {
		s.t.Error(err)
	}
}

func longer(d time.Duration) func(*stage) {
	return func(*stage) { time.Sleep(d) } //nolint:forbidigo // virtual
}

// Handlers.

func paid(context.Context) (idem.Response, error) {
	return idem.Response{Status: 201, Body: []byte("paid: yes")}, nil
}

func status(status int) handler {
	return func(context.Context) (idem.Response, error) { return idem.Response{Status: status}, nil }
}

// then runs phases one after the other, and fn after them.
func then(fn handler, phases ...func(context.Context) error) handler {
	return func(ctx context.Context) (idem.Response, error) {
		for _, phase := range phases {
			if err := phase(ctx); err != nil {
				return idem.Response{}, err
			}
		}
		return fn(ctx)
	}
}

func order(ctx context.Context) error {
	_, err := idem.Atomic(ctx, "order", func(_ context.Context, tx *idem.Tx) (int, error) {
		tx.Write(note("order"))
		tx.Stage(idem.NewJob("mail", 1))
		return 1, nil
	})
	return err
}

func charges(opts ...idem.PhaseOption) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Key("stripe")
			return "charged", nil
		}, opts...)
		return err
	}
}

// chargesWith ends a call with an error.
func chargesWith(end error, opts ...idem.PhaseOption) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Key("stripe")
			return "", end
		}, opts...)
		return err
	}
}

func orderPaid(ctx context.Context) (idem.Response, error) {
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Write(note("finish"))
		tx.Stage(idem.NewJob("receipt", 1))
		return idem.Response{Status: 201, Body: []byte("finished: yes")}, nil
	})
}

// writesOnce commits a phase without a job.
func writesOnce(ctx context.Context) error {
	_, err := idem.Atomic(ctx, "write", func(_ context.Context, tx *idem.Tx) (int, error) {
		tx.Write(note("write"))
		return 1, nil
	})
	return err
}

// asksNoKey makes a call that can't be repeated, and has no key.
func asksNoKey(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 1, nil }, idem.NotIdempotent())
	return err
}

func finishesWithJobs(n int) handler {
	return func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			for i := range n {
				tx.Stage(idem.NewJob("mail", i))
			}
			return idem.Response{Status: 201}, nil
		})
	}
}

// finishesAnew has another answer in each run of its last phase.
func finishesAnew() handler {
	run := 0
	return func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) {
			run++
			return idem.Response{Status: 200 + run, Body: fmt.Appendf(nil, "the answer of run %d", run)}, nil
		})
	}
}

// answersTwice answers in the first run of a phase, no more in its second one, and once
// more after it.
func answersTwice() handler {
	run := 0
	return func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (int, error) {
			if run++; run > 1 {
				return 1, nil
			}
			return 0, idem.Respond(idem.Response{Status: 402, Body: []byte("declined, sorry")})
		})
		return idem.Response{}, idem.Respond(idem.Response{Status: 201, Body: []byte("paid: yes")})
	}
}

var programs = map[string]*situation{
	"plain, redelivered":                  {opts: []func(*idem.Options){resumable}, act: sends(paid, redelivered)},
	"intent":                              {act: sends(then(paid, charges(idem.NotIdempotent())))},
	"takes over, its body gone":           {opts: []func(*idem.Options){resumable}, before: all(wasKilled(then(paid, order)), bodiesGone), act: sends(then(orderPaid, order, charges()))},
	"a key that was forgotten":            {before: all(sentBefore(then(paid, order)), forgets), act: sends(paid)},
	"an expired key":                      {before: all(sentBefore(paid), longer(50*time.Hour)), act: sends(paid)},
	"ends without a call in doubt":        {before: sentBefore(then(paid, order, chargesWith(errors.New("timeout")))), act: sends(then(orderPaid, order))},
	"stages for a delivery":               {act: sends(then(paid, order), func(r *idem.Request) { r.DeliveryKey = true })},
	"phases for a delivery":               {act: sends(then(paid, writesOnce), func(r *idem.Request) { r.DeliveryKey = true })},
	"fails after an intent without a key": {act: sends(then(failing, asksNoKey))},
	"finishes with too many jobs":         {act: sends(finishesWithJobs(100))},
	"finishes anew":                       {act: func(s *stage) string { return s.send(s.e, finishesAnew()) }},
	"answers twice":                       {act: func(s *stage) string { return s.send(s.e, answersTwice()) }},
	"observes, not stored":                {opts: []func(*idem.Options){observes}, act: sends(status(500))},
	"observes":                            {opts: []func(*idem.Options){observes}, act: sends(paid)},
	"ends a lease, in little time": {before: holds(then(paid, order)), act: func(s *stage) string {
		ctx, cancel := context.WithTimeout(s.ctx, defaults.Reserve+10*time.Millisecond)
		defer cancel()
		return received(idem.Result{}, s.e.EndLease(ctx, s.ticket(), "ann"))
	}},
	"change, used here, died there": {opts: []func(*idem.Options){changing(false)}, before: all(wasKilled(then(paid, order), changing(true)), usedHere), act: sends(then(orderPaid, order))},
	"change, used here, done there": {opts: []func(*idem.Options){changing(false)}, before: all(sentBefore(paid, changing(true)), usedHere), act: sends(paid)},
	"completes, no time": {opts: []func(*idem.Options){resumable}, before: wasKilled(then(paid, order)), act: func(s *stage) string {
		ctx, cancel := context.WithTimeout(s.ctx, 100*time.Millisecond)
		defer cancel()
		return received(s.e.Resume(ctx, s.ticket(), func(context.Context, *idem.Request) (idem.Response, error) { return paid(ctx) }))
	}},
	"settles what isn't of this namespace": {before: sentBefore(paid), act: decides(func(ctx context.Context, e *idem.Engine, t jobs.Ticket) error {
		return e.Settle(ctx, "x", idem.Settlement{})
	})},
	"gives up what isn't of this namespace": {before: sentBefore(paid), act: decides(func(ctx context.Context, e *idem.Engine, t jobs.Ticket) error {
		return e.MarkStuck(ctx, jobs.Ticket{PK: "x"}, "test")
	})},
	"plain, in little time": {act: func(s *stage) string {
		ctx, cancel := context.WithTimeout(s.ctx, defaults.Reserve+30*time.Millisecond)
		defer cancel()
		return received(s.e.Do(ctx, aRequest, s.counting(paid)))
	}},
	"completes, in much time": {opts: []func(*idem.Options){resumable}, before: wasKilled(then(paid, order)), act: func(s *stage) string {
		ctx, cancel := context.WithTimeout(s.ctx, 10*time.Minute)
		defer cancel()
		return received(s.e.Resume(ctx, s.ticket(), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return then(paid, order)(ctx) }))
	}},
	"change, done before":      {opts: []func(*idem.Options){changing(false)}, before: sentBefore(paid, changing(true)), act: sends(paid)},
	"change, died before":      {opts: []func(*idem.Options){changing(false)}, before: wasKilled(then(paid, order), changing(true)), act: sends(then(orderPaid, order))},
	"change, forgotten before": {opts: []func(*idem.Options){changing(false)}, before: all(sentBefore(then(paid, order), changing(true)), forgets), act: sends(paid)},
	"change, another's before": {opts: []func(*idem.Options){changing(false)}, before: sentBefore(paid, changing(true)), act: sends(paid, func(r *idem.Request) { r.Body = []byte("another one") })},
	"completes":                {opts: []func(*idem.Options){resumable}, before: wasKilled(then(paid, order)), act: resumes(then(orderPaid, order, charges()))},
	"completes, gone for long": {opts: []func(*idem.Options){resumable}, before: all(wasKilled(then(paid, order)), bodiesGone, longer(50*time.Hour)), act: resumes(then(orderPaid, order))},
	"completes, withheld":      {opts: []func(*idem.Options){resumable, firstTry}, before: wasKilled(then(paid, order)), act: resumes(then(status(409), order))},
	"completes what is held":   {opts: []func(*idem.Options){resumable}, before: holds(then(paid, order)), act: resumes(paid)},
	"gives up": {before: wasKilled(then(paid, order)), act: decides(func(ctx context.Context, e *idem.Engine, t jobs.Ticket) error {
		return e.MarkStuck(ctx, t, "nobody came")
	})},
	"forgets": {before: sentBefore(then(paid, order)), act: decides(func(ctx context.Context, e *idem.Engine, t jobs.Ticket) error {
		_, err := e.Forget(ctx, t, "ann", idem.Loss{Work: true, Jobs: true})
		return err
	})},
	"ends a lease": {before: holds(then(paid, order)), act: decides(func(ctx context.Context, e *idem.Engine, t jobs.Ticket) error { return e.EndLease(ctx, t, "ann") })},
	"answers, and works on": {act: sends(func(ctx context.Context) (idem.Response, error) {
		res, err := orderPaid(ctx)
		time.Sleep(90 * time.Second) //nolint:forbidigo // virtual
		return res, err
	})},
	"fails after a completer's last try": {opts: []func(*idem.Options){resumable, firstTry}, before: all(sentBefore(failing), func(s *stage) { _ = resumes(failing)(s) }), act: sends(failing)},
	"gives up, nothing done": {opts: []func(*idem.Options){resumable}, before: sentBefore(failing), act: decides(func(ctx context.Context, e *idem.Engine, t jobs.Ticket) error {
		return e.MarkStuck(ctx, t, "nobody came")
	})},
	"refused, first try": {opts: []func(*idem.Options){resumable, firstTry}, before: all(sentBefore(failing), func(s *stage) { _ = resumes(failing)(s) }), act: sends(status(409))},
	"completes, nobody loads its body": {opts: []func(*idem.Options){resumable}, before: wasKilled(then(paid, order)), act: func(s *stage) string {
		s.e = idem.New(&spoilt{Store: s.store}, s.opts...)
		return resumes(then(paid, order))(s)
	}},
	"forgets what is sealed":             {before: sentBefore(paid), act: forgetsSealed(store.ErrSealed, true)},
	"forgets what is sealed, unreadable": {before: sentBefore(paid), act: forgetsSealed(store.ErrSealed, false)},
	"forgets what can't be read":         {before: sentBefore(paid), act: forgetsSealed(errDenied, true)},
}

// forgetsSealed forgets a record whose contents can't be opened, or that can't be read.
func forgetsSealed(end error, returned bool) func(*stage) string {
	return func(s *stage) string {
		s.e = idem.New(&spoilt{Store: s.store, load: func(ctx context.Context, pk string) (*store.Record, error) {
			r, err := s.table.Load(ctx, pk)
			if !returned {
				r = nil
			}
			return r, errors.Join(err, end)
		}}, s.opts...)
		return decides(func(ctx context.Context, e *idem.Engine, t jobs.Ticket) error {
			_, err := e.Forget(ctx, t, "ann", idem.Loss{Work: true, Jobs: true})
			return err
		})(s)
	}
}
