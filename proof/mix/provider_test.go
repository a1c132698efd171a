package mix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
)

// provider makes payments, once for each key that it remembers; those without a key
// each time.
type provider struct {
	keys map[string]*payment
	all  []*payment
	out  map[string]outage // by key
	down time.Time         // until when it can't be asked
	sent map[string]bool   // keys of calls that are never repeated
}

// payment is an effect at the provider.
type payment struct {
	intent, step, op, key, id string
	sent                      string // the derived key
	declined                  bool
	made, known               time.Time // known: to a look-up
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
		if st.never && w.provider.sent[key] && !w.ledger.op(op).settled {
			w.fail(chargedOnce+": payment %s of %s is called again, and is never repeated", st.name, w.opName(op))
		}
		w.provider.sent[key] = st.never
		lost, mute := w.outage(st, key, c)
		switch {
		case w.fires(crashBefore, 0.01, c):
			w.crash(r.p)
		case w.fires(crashAfter, 0.02, c):
			_, _ = apply(", and the process crashes")
			w.crash(r.p)
		case lost:
			lose(providerOut, errPay, time.Second)
		case mute:
			w.after(delay, func() { _, _ = apply(", and the answer is lost") })
			lose(providerMute, errPay, time.Second)
		case st.look && w.fires(onItsWay, 0.3, c):
			wait := w.between(time.Second, st.onWay, "on its way", c.actor, c.n)
			w.after(wait, func() { _, _ = apply(", after " + wait.String() + " on its way") })
			if w.hash("on its way", c.actor, c.n)%2 == 0 {
				w.crash(r.p)
				return
			}
			lose(onItsWay, errPay, time.Second)
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
	ref := key
	if st.intent || st.never {
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
		intent: intent, step: st.name, op: op, key: key, sent: ref, id: fmt.Sprint("pay", len(p.all)), made: time.Now(), known: time.Now(),
		declined: w.odds(min(1, 0.06*w.rate), providerDenies, intent, st.name),
	}
	if now.declined {
		w.fired[providerDenies]++
	}
	if st.look && !w.calm.Load() && w.odds(min(1, 0.7*w.rate), findsLate, now.id) {
		now.known = now.made.Add(st.lag)
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

// outage is a time in which no call with a key is answered: the calls until lost are lost, and
// those until over are only not answered.
type outage struct{ lost, over time.Time }

// outage returns the outage that a call with a key is in. It may begin with the first of them.
func (w *world) outage(st step, key string, c *call) (lost, mute bool) {
	out, known := w.provider.out[key]
	if !known && st.look && w.fires(providerOut, 0.5, c) {
		out.lost = time.Now().Add(w.between(time.Second, max(st.trusted(), time.Minute), "lost", c.actor))
		out.over = time.Now().Add(max(st.trusted(), time.Hour))
	}
	w.provider.out[key] = out
	on := !w.calm.Load() && time.Now().Before(out.over)
	return on && time.Now().Before(out.lost), on
}

// find looks a call up, as the provider knows it at the begin of the look-up.
func (r *run) find(ctx context.Context, st step, key string) (string, idem.Found, error) {
	w, op := r.w, opID(ctx)
	v, err := w.ask(ctx, r.p, "find", st.name, func(c *call) {
		paid := w.finds(key)
		delay := w.between(20*time.Millisecond, 300*time.Millisecond, "find", c.actor, c.n)
		give := func(wait time.Duration, how string, err error) {
			w.after(wait, func() {
				w.note(c.actor, "look-up of payment %s of %s: made %t%s%s", st.name, w.opName(op), paid != nil, how, outcome(err))
				c.give(paid, err)
			})
		}
		if w.fires(findsDown, 0.1, c) {
			w.provider.down = time.Now().Add(w.between(time.Second, time.Hour, "down", c.actor, c.n))
		}
		switch {
		case w.fires(crashBefore, 0.01, c):
			w.crash(r.p)
		case time.Now().Before(w.provider.down) && !w.calm.Load():
			give(delay, ", and it is down", errPay)
		case w.fires(findsOther, 0.04, c):
			w.ledger.op(op).wrong = true
			give(delay, "", fmt.Errorf("%w: another amount", idem.ErrContradiction))
		case w.fires(findsSlowly, 0.1, c):
			wait := w.between(time.Second, 40*time.Second, "slowly", c.actor, c.n)
			give(wait, ", after "+wait.String(), nil)
		default:
			give(delay, "", nil)
		}
	})
	switch paid, _ := v.(*payment); {
	case err != nil:
		return "", 0, err
	case paid != nil:
		return paid.id, idem.Made, nil
	}
	return "", idem.NotMade, nil
}

// finds returns the payment with a derived key that look-ups know; nil for none.
func (w *world) finds(key string) *payment {
	for _, p := range w.provider.all {
		switch {
		case p.sent != key || p.declined:
		case time.Now().Before(p.known):
			w.fired[findsLate]++
		default:
			return p
		}
	}
	return nil
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
