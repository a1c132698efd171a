package tenants_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// planted is a fault of the shared world.
type planted struct {
	options func(*idem.Options)
	take    func(context.Context, store.Store, store.Take) store.Take
	invoke  func(*request, invoker) invoker
}

type invoker = func(context.Context, []byte) ([]byte, error)

// byKeyOnly answers from a cache whose entries are known by the client's key.
func byKeyOnly() func(*request, invoker) invoker {
	var mu sync.Mutex
	answers := make(map[string][]byte)
	return func(r *request, invoke invoker) invoker {
		if r.resume != nil || r.status || r.key == "" || r.content != 0 {
			return invoke
		}
		return func(ctx context.Context, payload []byte) ([]byte, error) {
			mu.Lock()
			out := answers[r.door+r.key]
			mu.Unlock()
			if out != nil {
				return out, nil
			}
			out, err := invoke(ctx, payload)
			mu.Lock()
			defer mu.Unlock()
			answers[r.door+r.key] = out
			return out, err
		}
	}
}

// withoutTenant hides the tenant from the program.
func withoutTenant(_ *request, invoke invoker) invoker {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		if lc, ok := lambdacontext.FromContext(ctx); ok {
			nobodys := *lc
			nobodys.TenantID = ""
			ctx = lambdacontext.NewContext(ctx, &nobodys)
		}
		return invoke(ctx, payload)
	}
}

// Each planted fault is found, within a few episodes.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]planted{
		"the scope is no part of the record's key": {options: func(o *idem.Options) {
			o.Scope = func(context.Context, *idem.Request) (string, error) { return "everybody", nil }
		}},
		"the tenant is no part of the scope": {invoke: withoutTenant},
		"the scope is what a header says": {options: func(o *idem.Options) {
			o.Scope = func(_ context.Context, r *idem.Request) (string, error) { return "user:" + r.Header.Get("X-User"), nil }
		}},
		"unverified callers aren't told apart": {options: func(o *idem.Options) { idem.OneScope(o); o.Scope, o.MinKey = nil, 1 }},
		"the cache is known by the key only":   {invoke: byKeyOnly()},
		"the fingerprint is of nothing": {options: func(o *idem.Options) {
			o.Fingerprint.Func, o.Fingerprint.FuncName = func(*idem.Request) ([]byte, error) { return nil, nil }, "none"
		}},
		"a resume doesn't look at the tenant": {take: func(ctx context.Context, s store.Store, t store.Take) store.Take {
			if rec, err := s.Load(ctx, t.PK); err == nil && rec != nil {
				t.Tenant = rec.Tenant
			}
			return state.WithFrom(t)
		}},
		"a resume doesn't look at the owner": {take: func(ctx context.Context, s store.Store, t store.Take) store.Take {
			if rec, err := s.Load(ctx, t.PK); err == nil && rec != nil {
				t.Owner, t.Ver = rec.Owner, rec.Ver
			}
			return state.WithFrom(t)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c, sound tally
			synctest.Test(t, func(t *testing.T) {
				c.fuzz(t.Context(), 1, 20000, inMemory(plant), false, memoryStore)
				sound.fuzz(t.Context(), 1, c.requests, inMemory(planted{}), true, memoryStore)
			})
			if len(c.leaks) == 0 {
				t.Fatalf("not found: %v", &c)
			}
			if len(sound.leaks) > 0 {
				t.Fatalf("without the fault: %s", sound.leaks[0])
			}
			t.Logf("found: %s", c.leaks[0])
		})
	}
}
