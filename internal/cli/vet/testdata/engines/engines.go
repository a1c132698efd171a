// Package engines has engines for the lock file.
package engines

import (
	"context"
	"time"

	"github.com/samekey/samekey/idem"
)

var plain = idem.New(&idem.MemoryStore{})

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
		o.Fingerprint = idem.Fingerprint{SkipQuery: true, Headers: []string{"X-Account"}, Known: []idem.Fingerprint{{}}}
	}
	return []*idem.Engine{
		idem.New(&a.store, idem.OneScope, func(o *idem.Options) { o.Fingerprint.CanonicalJSON, o.Retention = true, 72*time.Hour }),
		idem.New(&a.store, public, fingerprint),
		idem.New(&a.store, func(o *idem.Options) {
			o.Scope, o.ScopeRoute, o.MismatchIsNew = account, true, false
			o.Namespace = "live"
			if dev {
				o.Namespace = "dev"
			}
			o.Fingerprint.Func = func(r *idem.Request) ([]byte, error) { return r.Body[:8], nil }
			o.Fingerprint.FuncName = "first 8"
			o.Fingerprint.Secrets = []idem.Secret{{ID: "1"}}
		}),
		idem.New(&a.store, func(o *idem.Options) { o.ScopeRoute, o.Former = true, &idem.Former{Scope: account, Claims: true} }),
		idem.New(&a.store, idem.ACP),
		idem.New(&a.store, idem.Stripe, func(o *idem.Options) { o.Former = &idem.Former{Preset: idem.ACP, Claims: true} }),
	}
}
