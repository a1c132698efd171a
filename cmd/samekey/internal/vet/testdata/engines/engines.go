// Package engines has engines for the lock file.
package engines

import (
	"context"
	"time"

	"github.com/samekey/samekey/idem"
)

var plain = idem.New(&idem.MemoryStore{}) // want `engine 12 var$`

func account(_ context.Context, r *idem.Request) (string, error) {
	return r.Header.Get("X-Account"), nil
}

func public(o *idem.Options) {
	idem.OneScope(o)
	o.MinKey = 30
}

type app struct{ store idem.MemoryStore }

func (a *app) engines(dev bool) []*idem.Engine {
	fingerprint := func(o *idem.Options) {
		o.Fingerprint = idem.Fingerprint{CanonicalJSON: true, Headers: []string{"X-Account"}, Known: []idem.Fingerprint{{}}}
	}
	return []*idem.Engine{
		idem.New(&a.store, idem.OneScope, func(o *idem.Options) { o.Fingerprint.CanonicalJSON, o.Retention = true, 72*time.Hour }), // want `engine 0 app.engines$`
		idem.New(&a.store, public, fingerprint), // want `engine 1 app.engines#2$`
		idem.New(&a.store, func(o *idem.Options) { // want `engine 2 app.engines#3$`
			o.Scope = account
			o.Namespace = "live"
			if dev {
				o.Namespace = "dev"
			}
			o.Fingerprint.Func = func(r *idem.Request) ([]byte, error) { return r.Body[:8], nil }
			o.Fingerprint.FuncName = "first 8"
			o.Fingerprint.Secrets = []idem.Secret{{ID: "1"}}
		}),
		idem.New(&a.store, func(o *idem.Options) { o.Former = &idem.Former{Scope: account, Claims: true} }), // want `engine 3 app.engines#4$`
		idem.New(&a.store, idem.ACP), // want `engine 4 app.engines#5$`
		idem.New(&a.store, idem.Stripe, func(o *idem.Options) { o.Former = &idem.Former{Preset: idem.ACP, Claims: true} }), // want `engine 5 app.engines#6$`
	}
}

type config struct {
	option func(*idem.Options)
	text   string
}

// These Options are not the engine's.
type Options struct{ Scope string }

func both() (string, bool) { return "a", true }

func preset(o *idem.Options) {
	keys := 30
	var f idem.Fingerprint
	f.CanonicalJSON = true
	o.Fingerprint, o.MinKey, o.Scope = f, keys, account
}

func more(store *idem.MemoryStore, c config, mine Options, other struct{ Scope string }) []*idem.Engine {
	one := func(o *idem.Options) { o.Namespace, o.Namespace = "a", "a" }
	two := one
	three := two
	four := three
	tooFar := four
	return []*idem.Engine{
		idem.New(store, four),               // want `engine 6 more$`
		idem.New(store, tooFar),             // want `engine 7 more#2$`
		idem.New(store, c.option, idem.UCP), // want `engine 8 more#3$`
		idem.New(store, func(o *idem.Options) { // want `engine 9 more#4$`
			public(o)
			o.Namespace, o.Fingerprint.CanonicalJSON = both()
			c.text, mine.Scope, other.Scope = "", "", ""
			o.Fingerprint.Func = nil
		}),
		idem.New(store, func(o *idem.Options) { o.Former = &idem.Former{Preset: preset} }), // want `engine 10 more#5$`
		idem.New(store, func(o *idem.Options) { // want `engine 11 more#6$`
			o.Namespace = "of 80: 90123456789012345678901234567890123456789012345678901234567890123456789"
			o.Fingerprint.FuncName = "of 81: 901234567890123456789012345678901234567890123456789012345678901234567890"
		}),
	}
}
