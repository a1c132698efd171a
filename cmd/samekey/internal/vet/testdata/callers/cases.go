// Package callers has engines for the rule callers.
package callers

import (
	"context"

	"github.com/samekey/samekey/idem"
)

func account(_ context.Context, r *idem.Request) (string, error) {
	return r.Header.Get("X-Account"), nil
}

func byAccount(o *idem.Options) { o.Scope = account }

// want +3 `callers: the completer has no request from a client, so Options.Scope can't find the caller`

func bad(store *idem.MemoryStore) *idem.Engine {
	return idem.New(store, byAccount, func(o *idem.Options) { o.Resumable = true })
}

// want +3 `callers: the completer has no request from a client`

func before(store *idem.MemoryStore) *idem.Engine {
	return idem.New(store, func(o *idem.Options) { o.Resumable, o.Former = true, &idem.Former{Scope: account} })
}

func good(store *idem.MemoryStore) []*idem.Engine {
	resumable := func(o *idem.Options) { o.Resumable = true }
	return []*idem.Engine{
		idem.New(store, byAccount, resumable, func(o *idem.Options) { o.CallerFromOp = true }), // the handlers use Op.Caller
		idem.New(store, byAccount),
		idem.New(store, resumable), // an authorizer verifies the caller
		idem.New(store, byAccount, func(o *idem.Options) { o.Resumable, o.Function = false, "orders" }),
	}
}

// An engine of this package stores such answers.
func stores(store *idem.MemoryStore) *idem.Engine {
	return idem.New(store, func(o *idem.Options) { o.Stored, o.MinKey = func(idem.Response) bool { return true }, 30 })
}

func refuses(ctx context.Context) (idem.Response, error) {
	idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
	return idem.Response{Status: 409}, nil
}
