package mix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
)

var (
	errHandler = errors.New("the handler fails")
	errPanic   = errors.New("the handler panics")
)

// run is a run of the script.
type run struct {
	p      *process
	w      *world
	s      *script
	name   string // of the actor
	intent string
	done   []string // the phases that it has passed
}

// book is an item of the user's table.
type book struct {
	PK string `dynamodbav:"pk"`
}

// task is what a job is about.
type task struct {
	Op   string `json:"op"`
	Step string `json:"step"`
}

// handle is the handler: it does what the script of its process says.
func (p *process) handle(ctx context.Context, body string) (idem.Response, error) {
	intent, _, _ := strings.Cut(body, " ")
	r := &run{p: p, w: p.w, s: p.script, name: actorOf(ctx).name, intent: intent}
	resp, err := r.play(ctx)
	if _, quits := errors.AsType[*idem.Error](err); !quits && (errors.Is(err, errHandler) || errors.Is(err, errDeclined)) && p.w.calm.Load() {
		op := opID(ctx)
		p.w.say(ctx, p, "fails", "", func() { p.w.ledger.own[op] = true })
	}
	return resp, err
}

func (r *run) play(ctx context.Context) (idem.Response, error) {
	for i, st := range r.s.steps {
		if resp, err, ends := r.trouble(ctx, i); ends {
			return resp, err
		}
		if err := r.phase(ctx, i, st); err != nil {
			return r.failed(ctx, i, err)
		}
		r.done = append(r.done, st.name)
	}
	if resp, err, ends := r.trouble(ctx, len(r.s.steps)); ends {
		return resp, err
	}
	if r.s.fails {
		return idem.Response{}, errHandler
	}
	switch r.s.end {
	case "finish":
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			if r.s.writes {
				tx.Write(r.count(ctx, "end"))
			}
			for range r.s.jobs {
				tx.Stage(idem.NewJob("job", task{opID(ctx), "end"}))
			}
			return r.answer(ctx, "end", r.s.status, r.s.size), nil
		})
	case "respond":
		return idem.Response{}, idem.Respond(r.answer(ctx, "end", r.s.status, r.s.size))
	}
	return r.answer(ctx, "end", r.s.status, r.s.size), nil
}

// trouble is what a handler does before a phase, or before its end: nothing, mostly.
func (r *run) trouble(ctx context.Context, i int) (resp idem.Response, err error, ends bool) {
	w := r.w
	if early := r.s.early; early != 0 && r.s.at == i && (r.s.always || w.hash("early", r.name)%2 == 0 && !w.calm.Load()) {
		resp = r.answer(ctx, "early", early, 80)
		if r.s.respond {
			return idem.Response{}, idem.Respond(resp), true
		}
		return resp, nil, true
	}
	if w.calm.Load() {
		return resp, nil, false
	}
	odds := func(p float64, c choice) bool { return w.odds(min(1, p*w.rate), c, r.name, i) }
	if odds(0.05, dawdles) {
		select {
		case <-ctx.Done():
		case <-time.After(w.between(time.Millisecond, 4*time.Second, "dawdles", r.name, i)):
		}
	}
	switch {
	case odds(0.01, ignoresEnd):
		w.rest(w.limit + w.lease + 10*time.Second)
	case odds(0.02, fails):
		return resp, errHandler, true
	case odds(0.01, panics):
		panic(errPanic)
	}
	return resp, nil, false
}

// failed is what a handler does after a phase has failed: it returns the error, or has an
// answer all the same.
func (r *run) failed(ctx context.Context, i int, err error) (idem.Response, error) {
	if r.w.odds(0.3, swallows, r.name, i) && (!r.w.calm.Load() || errors.Is(err, errDeclined)) {
		status := []int{402, 409, 422, 500, 201}[r.w.hash("swallows", r.name, i)%5]
		if errors.Is(err, errDeclined) {
			status = http.StatusPaymentRequired
		}
		return r.answer(ctx, "swallowed", status, 80), nil
	}
	return idem.Response{}, err
}

func (r *run) phase(ctx context.Context, i int, st step) error {
	w := r.w
	var opts []idem.PhaseOption
	for _, o := range []struct {
		on  bool
		opt idem.PhaseOption
	}{
		{st.intent, idem.NotIdempotent()},
		{st.memory > 0, idem.Remembers(st.memory)},
		{st.never, idem.Remembers(0)},
		{st.look, idem.LookUp(func(ctx context.Context, c idem.Call) (string, idem.Found, error) { return r.find(ctx, st, c.Key) }, st.within)},
		{st.sends && st.steps, idem.Sends("pay", r.intent, st.name)},
		{st.sends && !st.steps, idem.Sends("pay", r.intent)},
	} {
		if o.on {
			opts = append(opts, o.opt)
		}
	}
	fn := func(ctx context.Context, tx *idem.Tx) (string, error) {
		result := r.name
		if st.foreign {
			var steps []string
			if st.steps {
				steps = []string{st.name}
			}
			key := tx.Key("pay", steps...)
			if w.deriveFlaw {
				key += r.name
			}
			id, err := r.pay(ctx, st, key)
			switch {
			case errors.Is(err, errDeclined) && st.joins:
				return "", idem.Respond(r.answer(ctx, "declined", http.StatusPaymentRequired, 80))
			case st.intent && (errors.Is(err, errDown) || errors.Is(err, errDeclined)):
				return "", idem.SafeToRetry(err)
			case err != nil:
				return "", err
			}
			result = id
		}
		if st.writes {
			tx.Write(r.count(ctx, st.name))
		}
		for range st.jobs {
			tx.Stage(idem.NewJob("job", task{opID(ctx), st.name}))
		}
		return result + string(w.pad(st.size, true, r.name, i)), nil
	}
	var got string
	var err error
	if st.foreign {
		got, err = idem.Foreign(ctx, st.name, fn, opts...)
	} else {
		got, err = idem.Atomic(ctx, st.name, fn)
	}
	if err == nil {
		op := opID(ctx)
		w.say(ctx, r.p, "passes", "", func() { w.passed(r.name, op, st.name, got) })
	}
	return err
}

// count is a write that counts how often a phase of an operation has committed.
func (r *run) count(ctx context.Context, step string) *dynamo.Write {
	return dynamo.Update(books, book{opID(ctx) + "/" + step}, "SET n = if_not_exists(n, :zero) + :one", dynamo.Args{":zero": 0, ":one": 1})
}

func opID(ctx context.Context) string {
	op, ok := idem.FromContext(ctx)
	if !ok {
		return ""
	}
	return op.ID()
}

// answer is an answer of the handler: it says whose it is, where it was made, and which
// phases its run has passed.
func (r *run) answer(ctx context.Context, where string, status, size int) idem.Response {
	head := fmt.Sprintf("mix %s %s %s %s %s ", r.intent, opID(ctx), where, strings.Join(r.done, ",")+";", strings.ReplaceAll(r.name, " ", "-"))
	body := append([]byte(head), r.w.pad(max(0, size-len(head)), false, r.name, where)...)
	return idem.Response{Status: status, Header: http.Header{"Content-Type": {"application/octet-stream"}}, Body: body}
}

// told is an answer of a handler, taken apart.
type told struct {
	intent, op, where, by string
	done                  []string
}

// readAnswer takes an answer apart; false if the engine made it.
func readAnswer(body []byte) (t told, ok bool) {
	parts := strings.SplitN(string(body[:min(len(body), 400)]), " ", 7)
	if len(parts) < 6 || parts[0] != "mix" {
		return t, false
	}
	t = told{intent: parts[1], op: parts[2], where: parts[3], by: parts[5]}
	if list := strings.TrimSuffix(parts[4], ";"); list != "" {
		t.done = strings.Split(list, ",")
	}
	return t, true
}
