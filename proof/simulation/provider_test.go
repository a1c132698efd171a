package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem"
)

// memory is how long the payment provider knows a key.
const memory = 4 * time.Hour

// provider takes payments, once for each key that it knows.
type provider struct {
	w       *world
	keys    map[string]*charge
	byOrder map[string]map[string]bool // keys
	taken   map[string]int             // by order
	calls   int
}

type charge struct {
	order, id string
	op        string // the operation's id
	declined  bool
	made      time.Time
}

var (
	errDeclined = errors.New("the card was declined")
	errPay      = errors.New("the provider has no answer")
	errBusy     = errors.New("the provider works on an earlier call")
)

// pay calls the provider.
func (sb *sandbox) pay(ctx context.Context, key, order string) (string, error) {
	w, op := sb.w, opID(ctx)
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	v, err := w.ask(ctx, actorOf(ctx, sb), "charge", order, sb, func(c *call) {
		p := w.provider
		apply := func(how string) (any, error) {
			id, err := p.charge(key, order, op)
			w.progress()
			w.note(c.actor, "charge of %s: %s%s%s", order, id, how, outcome(err))
			return id, err
		}
		delay := w.between(20*time.Millisecond, 300*time.Millisecond)
		lose := func(f fault, err error, wait time.Duration) {
			w.after(wait, func() {
				w.note(c.actor, "charge of %s: %s", order, f)
				c.give("", err)
			})
		}
		switch {
		case sb.crashes(c, apply):
		case !sb.frozen && w.fires(frozen, 0.01):
			w.freeze(c, apply)
		case w.fires(providerLost, 0.02):
			lose(providerLost, errPay, time.Second)
		case w.fires(providerDown, 0.02):
			lose(providerDown, errPay, delay)
		case w.fires(providerBusy, 0.02):
			lose(providerBusy, errBusy, delay)
		case w.fires(providerMute, 0.03):
			w.after(delay, func() { _, _ = apply(", and the answer is lost") })
			lose(providerMute, errPay, time.Second)
		case w.fires(providerHangs, 0.02):
			w.after(w.between(time.Second, 30*time.Second), func() { c.give(apply(", after its client's time")) })
		default:
			w.after(delay, func() { c.give(apply("")) })
		}
	})
	id, _ := v.(string)
	return id, err
}

func (p *provider) charge(key, order, op string) (string, error) {
	w := p.w
	p.calls++
	c := p.keys[key]
	if c != nil && time.Since(c.made) >= memory {
		w.note("provider", "has forgotten the key of %s", order)
		c = nil
	}
	if c == nil {
		declined := !w.off[providerDenies] && w.odds(0.05*w.rate, "declined", order)
		if declined {
			w.counts[providerDenies]++
		}
		c = p.takes(key, key, order, op, declined)
	}
	switch {
	case c.order != order:
		w.fail("order %s: its key is that of order %s", order, c.order)
		return "", errPay
	case c.declined:
		return "", errDeclined
	}
	return c.id, nil
}

// takes notes a charge of an order, under a derived key and its name at the provider.
func (p *provider) takes(key, name, order, op string, declined bool) *charge {
	w := p.w
	if p.byOrder[order] == nil {
		p.byOrder[order] = make(map[string]bool)
	}
	p.byOrder[order][key] = true
	if n := len(p.byOrder[order]); n > 1 {
		w.fail("order %s: the provider is called under %d keys", order, n)
	}
	c := &charge{order: order, op: op, id: fmt.Sprintf("ch_%s_%d", order, len(p.keys)), declined: declined, made: time.Now()}
	p.keys[name] = c
	if !declined {
		p.taken[order]++
		if p.taken[order] > 1 {
			w.fail("order %s: charged %d times", order, p.taken[order])
		}
	}
	return c
}

// trust is how long the program relies on the provider's memory.
func trust() idem.PhaseOption { return idem.Remembers(memory) }
