package lambda_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/internal/envelope"
)

// dead is a store whose process dies in a handler, and the time until its lease is over.
func dead(now *time.Time) (alive *idem.MemoryStore, engine *idem.Engine, dies func(), over func()) {
	alive = new(idem.MemoryStore)
	faulty := idemtest.Faulty(alive, nil)
	return alive, resumable(faulty, now), faulty.Crash, func() { *now = now.Add(time.Hour) }
}

// A payload that is run again from its record is done although its key can't be found any more,
// and although its result has no JSON form.
func TestPayloadIsRunAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	alive, engine, dies, over := dead(&now)
	named := func(o *lambda.HandlerOptions) { o.Name = "pay" }
	first := lambda.Wrap(engine, lambda.Direct[order, any](orderID), func(context.Context, order) (any, error) { dies(); return nil, errors.New("died") }, named)
	if _, err := first.Handle(t.Context(), order{ID: "1"}); err == nil {
		t.Fatal("it didn't die")
	}
	over()
	runs := 0
	noKey := func(order) (string, error) { return "", errors.New("no key any more") }
	again := lambda.Wrap(resumable(alive, &now), lambda.Direct[order, any](noKey), func(context.Context, order) (any, error) {
		runs++
		return func() {}, nil
	}, named)
	if o := resume(t, again, ticket(t, alive)); o.Kind != envelope.Done || runs != 1 {
		t.Errorf("got %+v after %d runs", o, runs)
	}
	if _, err := lambda.Wrap(resumable(process{alive}, &now), lambda.Direct[order, any](orderID), func(context.Context, order) (any, error) { runs++; return nil, nil }, named).
		Handle(t.Context(), order{ID: "1"}); !errors.Is(err, idem.ErrNotKept) || runs != 1 {
		t.Errorf("its caller gets %v after %d runs, want ErrNotKept", err, runs)
	}
}

// A stored request from which no event can be made, or an answer that can't be made neutral,
// fails its ticket, and so does an event that can't be read.
func TestRequestThatCannotBeRunAgain(t *testing.T) {
	t.Parallel()
	failing := errors.New("it can't be made")
	for name, breaks := range map[string]func(*lambda.Adapter[v2Request, v2Response]){
		"the event": func(a *lambda.Adapter[v2Request, v2Response]) {
			a.Event = func(idem.Request) (v2Request, error) { return v2Request{}, failing }
		},
		"its request": func(a *lambda.Adapter[v2Request, v2Response]) {
			a.Request = func(context.Context, v2Request) (idem.Request, error) { return idem.Request{}, failing }
		},
		"the answer": func(a *lambda.Adapter[v2Request, v2Response]) {
			a.Response = func(v2Response) (idem.Response, error) { return idem.Response{}, failing }
		},
	} {
		now := time.Now()
		alive, engine, dies, over := dead(&now)
		named := func(o *lambda.HandlerOptions) { o.Name = "pay" }
		first := lambda.Wrap(engine, lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) { dies(); return v2Response{}, failing }, named)
		if _, err := first.Handle(t.Context(), post("k", "")); err != nil {
			t.Fatal(err)
		}
		over()
		api, runs := lambda.HTTPAPI, 0
		breaks(&api)
		h := lambda.Wrap(resumable(alive, &now), api, func(context.Context, v2Request) (re v2Response, _ error) { runs++; return re, nil }, named)
		if o := resume(t, h, ticket(t, alive)); o.Kind != envelope.Failed || (runs == 1) != (name == "the answer") {
			t.Errorf("%s: got %+v after %d runs", name, o, runs)
		}
	}
}

// An adapter may say how a phase's answer becomes a response, also in a run from the record.
func TestAdapterConvertsAnswers(t *testing.T) {
	t.Parallel()
	api, converted := lambda.HTTPAPI, 0
	api.Request = func(ctx context.Context, ev v2Request) (idem.Request, error) {
		req, err := lambda.HTTPAPI.Request(ctx, ev)
		req.Answer = func(any) (idem.Response, error) { converted++; return idem.Response{Status: 207}, nil }
		return req, err
	}
	h := lambda.Wrap(idem.New(new(idem.MemoryStore), callertest.Anybody), api, answersInAPhase)
	if re, err := h.Handle(t.Context(), post("k", "")); err != nil || re.StatusCode != 207 || converted != 1 {
		t.Errorf("got %+v, %v, converted %d times", re, err, converted)
	}
	typed := lambda.Direct[order, int](orderID)
	read := typed.Request
	typed.Request = func(ctx context.Context, o order) (idem.Request, error) {
		req, err := read(ctx, o)
		req.Answer = func(any) (idem.Response, error) { converted++; return idem.Response{Body: []byte("7")}, nil }
		return req, err
	}
	d := lambda.Wrap(idem.New(new(idem.MemoryStore), callertest.Anybody), typed, func(ctx context.Context, _ order) (int, error) {
		_, err := answersInAPhase(ctx, v2Request{})
		return 0, err
	})
	if got, err := d.Handle(t.Context(), order{ID: "1"}); err != nil || got != 7 || converted != 2 {
		t.Errorf("got %d, %v, converted %d times", got, err, converted)
	}
}

// answersInAPhase is a handler whose phase answers.
func answersInAPhase(ctx context.Context, _ v2Request) (v2Response, error) {
	_, err := idem.Atomic(ctx, "phase", func(context.Context, *idem.Tx) (int, error) { return 0, idem.Respond(v2Response{StatusCode: 422}) })
	return v2Response{StatusCode: 500}, err
}

// A ticket that no engine has is over; one that an engine has, but none of its routes, is not
// this function's, in whatever order the engines are asked.
func TestRouterTellsWhoseATicketIs(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"has it", "another"}, {"another", "has it"}, {"another", "has it", "a third"}} {
		now := time.Now()
		alive, engine, dies, over := dead(&now)
		first := lambda.Wrap(engine, lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) { dies(); return v2Response{}, errors.New("died") },
			func(o *lambda.HandlerOptions) { o.Name = "gone" })
		if _, err := first.Handle(t.Context(), post("k", "")); err != nil {
			t.Fatal(err)
		}
		over()
		r := lambda.NewRouter(lambda.HTTPAPI)
		for _, name := range order {
			st := store.Store(new(idem.MemoryStore))
			if name == "has it" {
				st = alive
			}
			r.Keyed("POST /"+name[:1]+name[len(name)-1:], resumable(st, &now), func(context.Context, v2Request) (re v2Response, _ error) { return re, nil })
		}
		if o := resume(t, r, ticket(t, alive)); o.Kind != envelope.NotMine {
			t.Errorf("%v: got %+v, want that it is another function's", order, o)
		}
	}
}
