package mix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samekey/samekey/internal/base/defaults"
)

// provider makes payments, once for each key that it remembers; those without a key
// each time.
type provider struct {
	keys map[string]*payment
	all  []*payment
}

// payment is an effect at the provider.
type payment struct {
	intent, step, op, key, id string
	declined                  bool
	made                      time.Time
}

var (
	errDeclined = errors.New("the card was declined")
	errPay      = errors.New("the provider has no answer")
	errDown     = errors.New("the provider refuses connections")
)

// pay calls the provider.
func (r *run) pay(ctx context.Context, st step, key string) (string, error) {
	w, op := r.w, opID(ctx)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	v, err := w.ask(ctx, r.p, "pay", st.name, func(c *call) {
		sent := time.Now()
		apply := func(how string) (any, error) {
			id, err := w.charge(r.intent, op, st, key, sent)
			w.note(c.actor, "payment %s of %s: %s%s%s", st.name, w.opName(op), id, how, outcome(err))
			return id, err
		}
		delay := w.between(20*time.Millisecond, 300*time.Millisecond, "pay", c.actor, c.n)
		lose := func(f choice, err error, wait time.Duration) {
			w.after(wait, func() {
				w.note(c.actor, "payment %s of %s: %s", st.name, w.opName(op), f)
				c.give("", err)
			})
		}
		switch {
		case w.fires(crashBefore, 0.01, c):
			w.crash(r.p)
		case w.fires(crashAfter, 0.02, c):
			_, _ = apply(", and the process crashes")
			w.crash(r.p)
		case w.fires(providerLost, 0.03, c):
			lose(providerLost, errPay, time.Second)
		case w.fires(providerDown, 0.03, c):
			lose(providerDown, errDown, delay)
		case w.fires(providerMute, 0.06, c):
			w.after(delay, func() { _, _ = apply(", and the answer is lost") })
			lose(providerMute, errPay, time.Second)
		case w.fires(providerLate, 0.04, c):
			wait := w.between(time.Second, 40*time.Second, "pay late", c.actor, c.n)
			w.after(wait, func() { c.give(apply(", late by " + wait.String())) })
		default:
			w.after(delay, func() { c.give(apply("")) })
		}
	})
	id, _ := v.(string)
	return id, err
}

// charge makes a payment. What it must not do twice, it must not do twice.
func (w *world) charge(intent, op string, st step, key string, sent time.Time) (string, error) {
	p := &w.provider
	if st.intent {
		key = fmt.Sprint("none ", len(p.all))
	}
	memory := st.memory
	if memory == 0 {
		memory = defaults.Memory
	}
	if known := p.keys[key]; known != nil {
		if !w.on(providerForgets) || time.Since(known.made) < memory {
			return known.id, known.outcome()
		}
		w.fired[providerForgets]++
		w.note("provider", "has forgotten the key of %s", known.id)
	}
	now := &payment{
		intent: intent, step: st.name, op: op, key: key, id: fmt.Sprint("pay", len(p.all)), made: time.Now(),
		declined: w.odds(min(1, 0.06*w.rate), providerDenies, intent, st.name),
	}
	if now.declined {
		w.fired[providerDenies]++
	}
	for _, before := range p.all {
		if before.intent == intent && before.step == st.name && !before.declined {
			w.again(before, now)
		}
	}
	if at := w.ledger.op(op).told; !at.IsZero() && sent.After(at) {
		w.fail(toldIsKept+": %s makes payment %s although its client was told %s", w.opName(op), st.name, w.ledger.op(op).said)
	}
	p.all = append(p.all, now)
	p.keys[key] = now
	return now.id, now.outcome()
}

func (p *payment) outcome() error {
	if p.declined {
		return errDeclined
	}
	return nil
}

// again looks at a second payment for the same.
func (w *world) again(before, now *payment) {
	first := w.ledger.op(before.op)
	switch {
	case first.risk || w.ledger.op(now.op).risk: // an operator has taken the risk
	case before.op == now.op && before.key == now.key:
		w.fail(chargedOnce+": payment %s of %s is made twice under one key, which the provider has forgotten after %s", now.step, w.opName(now.op),
			now.made.Sub(before.made))
	case before.op == now.op:
		w.fail(chargedOnce+": payment %s of %s is made twice", now.step, w.opName(now.op))
	case first.over != "done":
		w.fail(chargedOnce+": payment %s is made by %s and, under another derived key, by %s; the first operation %s", now.step,
			w.opName(before.op), w.opName(now.op), first.fate())
	}
}

// paid reports whether a payment of an operation was made.
func (w *world) paid(op, step string) *payment {
	i := slices.IndexFunc(w.provider.all, func(p *payment) bool { return p.op == op && p.step == step && !p.declined })
	if i < 0 {
		return nil
	}
	return w.provider.all[i]
}
