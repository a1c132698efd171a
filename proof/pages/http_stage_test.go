package pages_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/internal/base/defaults"
)

// contract is a column of docs/use/http.md.
type contract struct {
	name   string
	preset func(*idem.Options)
	quoted bool // keys must be RFC 9651 strings
	long   bool // keys must have 22 characters
}

var contracts = []contract{
	{"default", func(*idem.Options) {}, false, false},
	{"Stripe", idem.Stripe, false, false},
	{"StripeV1", idem.StripeV1, false, false},
	{"IETF", idem.IETF, true, false},
}

// commerce are further columns of the table of presets.
var commerce = []contract{{"ACP", idem.ACP, false, false}, {"UCP", idem.UCP, false, true}}

// stage is an engine under one contract, and a client of it.
type stage struct {
	t *testing.T
	contract
	e     *idem.Engine
	store *troubled
}

// play runs act on a stage of its own, in a synctest bubble: its times are exact.
func play(t *testing.T, c contract, opt func(*idem.Options), act func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, contract: c, store: &troubled{}}
		s.with(opt)
		act(s)
	})
}

// with changes the engine's options, on the same store.
func (s *stage) with(opt func(*idem.Options)) {
	s.e = idem.New(s.store, s.preset, func(o *idem.Options) {
		if opt != nil {
			opt(o)
		}
	})
}

const (
	key   = "8e03978e-40d5"
	limit = 30 * time.Second // what a request has left of its invocation

	contentType = "application/vnd.shop+json" // the handler's own
)

type (
	handler = func(context.Context) (idem.Response, error)
	// outcome is an answer, and whether the handler ran for it.
	outcome struct {
		idem.Result
		ran bool
	}
)

// answering is a handler.
func answering(status int) handler {
	return func(context.Context) (idem.Response, error) {
		return idem.Response{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(`{"id":"ch_1"}`)}, nil
	}
}

var (
	created = answering(http.StatusCreated)
	errBank = errors.New("bank is down")
)

func failing(context.Context) (idem.Response, error) { return idem.Response{}, errBank }

// phased has one phase.
func phased(ctx context.Context) (idem.Response, error) {
	if _, err := idem.Atomic(ctx, "order_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
		return idem.Response{}, err
	}
	return created(ctx)
}

// unknown calls a system without keys, and gets no answer.
func unknown(ctx context.Context) (idem.Response, error) {
	_, err := idem.Foreign(ctx, "paid", func(context.Context, *idem.Tx) (int, error) { return 0, errBank }, idem.NotIdempotent())
	return idem.Response{}, err
}

// changesItsMind refuses a request after it has committed work, without idem.Respond.
func changesItsMind(ctx context.Context) (idem.Response, error) {
	_, err := idem.Atomic(ctx, "order_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
	return idem.Response{Status: http.StatusConflict}, err
}

// request is the one that all others differ from.
func (s *stage) request(edits ...func(*idem.Request)) idem.Request {
	r := idem.Request{
		Method: "POST", Path: "/charges", Route: "POST /charges", Identity: idem.Identity{Kind: "jwt", Subject: "jane"},
		Header: http.Header{"Idempotency-Key": {s.spelled(key)}}, Body: []byte(`{"amount":2000}`),
	}
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

func withKey(values ...string) func(*idem.Request) {
	return func(r *idem.Request) { r.Header = http.Header{"Idempotency-Key": values} }
}

func otherBody(r *idem.Request) { r.Body = []byte(`{"amount":9000}`) }

// post sends a request.
func (s *stage) post(h handler, edits ...func(*idem.Request)) outcome {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	return s.postFor(ctx, h, edits...)
}

func (s *stage) postFor(ctx context.Context, h handler, edits ...func(*idem.Request)) (o outcome) {
	s.t.Helper()
	var err error
	o.Result, err = s.e.Serve(ctx, s.request(edits...), func(ctx context.Context) (idem.Response, error) {
		o.ran = true
		return h(ctx)
	})
	if err != nil && !o.Passed {
		s.t.Errorf("Serve returns %v", err)
	}
	return o
}

func (s *stage) spelled(key string) string {
	if s.long {
		key += "-43e8-bc93"
	}
	if s.quoted {
		return `"` + key + `"`
	}
	return key
}

// wait passes time of the bubble.
func wait(d time.Duration) { <-time.After(d) }

// meanwhile runs second while a request is on its way.
func (s *stage) meanwhile(second func() outcome) outcome {
	first := make(chan struct{})
	go func() {
		defer close(first)
		s.post(func(ctx context.Context) (idem.Response, error) {
			wait(5 * time.Second)
			return created(ctx)
		})
	}()
	wait(time.Second)
	o := second()
	<-first
	return o
}

// overtaken is a request whose worker sleeps past its lease, and finds that
// another attempt has failed meanwhile.
func (s *stage) overtaken() outcome { return s.late(failing) }

// late is a request whose worker sleeps past its lease, while another attempt
// runs h.
func (s *stage) late(h handler) outcome {
	ctx, cancel := context.WithTimeout(asleep.With(s.t.Context()), limit)
	defer cancel()
	return s.postFor(ctx, func(ctx context.Context) (idem.Response, error) {
		wait(limit + 2*defaults.LeaseMargin)
		other := make(chan struct{})
		go func() { // another client, not a nested call
			defer close(other)
			s.post(h)
		}()
		<-other
		return created(ctx)
	})
}

// troubled is a store on which things go wrong as told.
type troubled struct {
	idem.MemoryStore
	down   error // of every call
	phase  error // of every commit of a phase
	finish error // of every answer
}

func (s *troubled) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	if s.down != nil {
		return nil, s.down
	}
	return s.MemoryStore.Claim(ctx, c)
}

func (s *troubled) Load(ctx context.Context, pk string) (*store.Record, error) {
	if s.down != nil {
		return nil, s.down
	}
	return s.MemoryStore.Load(ctx, pk)
}

func (s *troubled) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	if s.phase != nil && len(c.Next.Phases) > 0 {
		return nil, s.phase
	}
	if s.finish != nil && c.Next.State == store.Done {
		return nil, s.finish
	}
	return s.MemoryStore.Commit(ctx, c)
}
