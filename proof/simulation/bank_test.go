package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samekey/samekey/idem"
)

// terms are how a bank takes the transfer of an order, and what the program relies on.
type terms struct {
	remembers time.Duration // 0: it has no keys
	never     bool          // the program never repeats the call
	within    time.Duration // of the look-up: longer than onWay, lag and the difference of the clocks together
	onWay     time.Duration // the longest time of a call on its way
	lag       time.Duration // the longest time by which the look-up is behind
	opts      []idem.PhaseOption
}

// terms draws the terms of an order. While clocks may be wrong by an hour, within is longer.
func (w *world) terms(order string) terms {
	t := terms{within: 3 * time.Hour, onWay: longest}
	rest := t.within - 2*widest
	if w.clocksRight {
		t.within = 15 * time.Minute
		rest, t.onWay = t.within, t.within/3
	}
	switch n := w.hash("terms", order) % 6; {
	case n < 3 && w.clocksRight:
		t.remembers = 8 * time.Minute
		t.onWay = 2*time.Minute - time.Second // as long as the program trusts the bank less
		t.opts = []idem.PhaseOption{idem.Remembers(t.remembers)}
	case n < 3:
		t.remembers = memory + 2*widest
		t.opts = []idem.PhaseOption{idem.Remembers(memory)}
	case n < 5:
		t.opts = []idem.PhaseOption{idem.NotIdempotent()}
	default:
		t.never = true
		t.opts = []idem.PhaseOption{idem.Remembers(0)}
	}
	t.lag = rest - t.onWay - time.Second
	return t
}

// bank makes transfers. It can be asked for them.
type bank struct {
	w       *world
	all     []*transfer
	orders  map[string]string    // by operation
	lost    map[string]time.Time // until when the calls for an order are lost
	mute    map[string]time.Time // until when they are not answered
	down    time.Time            // until when it can't be asked
	strange map[string]bool      // orders for which a look-up has found something else
}

// transfer is a transfer that the bank has made.
type transfer struct {
	key         string
	made, known time.Time // known: to a look-up
	*charge
}

func newBank(w *world) *bank {
	return &bank{w: w, orders: make(map[string]string), lost: make(map[string]time.Time), mute: make(map[string]time.Time), strange: make(map[string]bool)}
}

// transfer is a handler whose call is looked up if it is in doubt.
func (a *app) transfer(ctx context.Context, ev request) (response, error) {
	tenant, in, err := a.read(ctx, ev)
	if err == nil {
		err = a.trouble(ctx, "begin")
	}
	if err != nil {
		return response{}, err
	}
	w, t := a.sb.w, a.sb.w.terms(in.Order)
	look := idem.LookUp(func(ctx context.Context, c idem.Call) (string, idem.Found, error) {
		return a.sb.find(ctx, c.Key, in.Order)
	}, t.within)
	id, err := idem.Foreign(ctx, "transferred", func(ctx context.Context, tx *idem.Tx) (string, error) {
		return a.sb.transfer(ctx, w.derived(tx.Key("bank")), in.Order)
	}, append(t.opts, idem.Sends("bank", in), look)...)
	if err == nil {
		err = a.trouble(ctx, "behind the transfer")
	}
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		return a.paid(tx, in, tenant, opID(ctx), id), nil
	})
}

// transfer calls the bank.
func (sb *sandbox) transfer(ctx context.Context, key, order string) (string, error) {
	w, op := sb.w, opID(ctx)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	v, err := w.ask(ctx, actorOf(ctx, sb), "transfer", order, sb, func(c *call) {
		b, t := w.bank, w.terms(order)
		apply := func(how string) (any, error) {
			id := b.transfer(t, key, order, op)
			w.progress()
			w.note(c.actor, "transfer of %s: %s%s", order, id, how)
			return id, nil
		}
		delay := w.between(20*time.Millisecond, 300*time.Millisecond)
		mute := func(after time.Duration, how string) {
			w.after(after, func() { _, _ = apply(how) })
			w.after(time.Second, func() { c.give("", errPay) })
		}
		if _, again := b.lost[order]; again && t.never {
			w.fail("order %s: its transfer is called again, and is never repeated", order)
		}
		b.begins(op, order)
		switch {
		case sb.crashes(c, apply):
		case !w.clocksRight && !sb.frozen && w.fires(frozen, 0.05):
			w.freeze(c, apply)
		case !w.calm && time.Now().Before(b.lost[order]):
			w.after(time.Second, func() {
				w.note(c.actor, "transfer of %s: %s", order, bankOut)
				c.give("", errPay)
			})
		case !w.calm && time.Now().Before(b.mute[order]):
			mute(delay, ", and the answer is lost")
		case w.fires(bankLate, 0.2):
			wait := w.between(time.Second, t.onWay)
			mute(wait, ", after "+wait.String()+" on its way")
		default:
			w.after(delay, func() { c.give(apply("")) })
		}
	})
	id, _ := v.(string)
	return id, err
}

// begins notes a call, from whose first one on the bank may have no answer for a while: the calls
// are lost, and later they are not answered.
func (b *bank) begins(op, order string) {
	w := b.w
	b.orders[op] = order
	if _, known := b.lost[order]; known {
		return
	}
	b.lost[order] = time.Time{}
	if w.fires(bankOut, 0.4) {
		b.lost[order] = time.Now().Add(w.between(time.Second, 5*time.Minute))
		b.mute[order] = time.Now().Add(6 * time.Minute)
	}
}

// transfer makes a transfer, once for each key that the bank knows.
func (b *bank) transfer(t terms, key, order, op string) string {
	w := b.w
	for _, known := range b.all {
		if known.key == key && time.Since(known.made) < t.remembers {
			return known.id
		}
	}
	c := w.provider.takes(key, fmt.Sprint(key, " ", len(b.all)), order, op, false)
	made := &transfer{key: key, made: time.Now(), known: time.Now(), charge: c}
	if !w.off[findsLate] && !w.calm && w.likely(0.7*w.rate) {
		made.known = made.made.Add(t.lag)
	}
	b.all = append(b.all, made)
	return c.id
}

// find looks a transfer up.
func (sb *sandbox) find(ctx context.Context, key, order string) (string, idem.Found, error) {
	w := sb.w
	v, err := w.ask(ctx, actorOf(ctx, sb), "find", order, sb, func(c *call) {
		b := w.bank
		apply := func(how string) (any, error) {
			id := b.finds(key)
			w.progress()
			w.note(c.actor, "look-up of %s: %q%s", order, id, how)
			return id, nil
		}
		delay := w.between(20*time.Millisecond, 300*time.Millisecond)
		fails := func(err error) {
			w.note(c.actor, "look-up of %s: %v", order, err)
			w.after(delay, func() { c.give("", err) })
		}
		if w.fires(findsDown, 0.1) {
			b.down = time.Now().Add(w.between(time.Second, 30*time.Minute))
		}
		switch {
		case sb.crashes(c, apply):
		case !sb.frozen && w.fires(frozen, 0.05):
			w.freeze(c, apply)
		case !w.calm && time.Now().Before(b.down):
			fails(errPay)
		case w.fires(findsOther, 0.02):
			b.strange[order] = true
			fails(fmt.Errorf("%w: another amount", idem.ErrContradiction))
		default:
			v, err := apply("")
			w.after(delay, func() { c.give(v, err) })
		}
	})
	id, _ := v.(string)
	switch {
	case err != nil:
		return "", 0, err
	case id == "":
		return "", idem.NotMade, nil
	}
	return id, idem.Made, nil
}

// finds returns the transfer that look-ups know; "" for none.
func (b *bank) finds(key string) string {
	for _, t := range b.all {
		switch {
		case t.key != key:
		case time.Now().Before(t.known):
			b.w.counts[findsLate]++
		default:
			return t.id
		}
	}
	return ""
}

// askedFirst reports whether people may be asked about an operation that is stuck: the bank
// can't say more.
func (b *bank) askedFirst(op, why string) error {
	order, known := b.orders[op]
	switch {
	case !known, b.strange[order], b.w.terms(order).never:
		return nil
	case strings.Contains(why, "not settled in"), strings.Contains(why, "not completed in"), strings.Contains(why, "its request was not stored"):
		return nil
	}
	return errors.New(order + " is left to people, and the bank can be asked: " + why)
}
