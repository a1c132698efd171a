package idem_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// A commit writes each field of a record but those that a claim alone writes.
func TestMemoryStoreCommitsEachField(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	claimed := storetest.MustClaim(t, &mem, storetest.ClaimAt(time.Now()))
	next := storetest.Next(claimed, func(n *store.Record) {
		old, count := *n, 0
		storetest.Fill(reflect.ValueOf(n).Elem(), &count)
		n.PK, n.ID, n.Owner, n.Ver, n.State, n.Expires, n.Keep = old.PK, old.ID, old.Owner, old.Ver, store.Done, old.Expires, store.KeepNothing
		n.Fingerprint, n.Secret, n.Scheme, n.Route, n.Region, n.DeliveryKey, n.Created, n.Trace, n.Input = old.Fingerprint, old.Secret, old.Scheme, old.Route, old.Region, old.DeliveryKey, old.Created, old.Trace, old.Input
		n.Overflow = nil // the store makes it
	})
	want := storetest.MustCommit(t, &mem, claimed, next)
	storetest.SameRecord(t, storetest.Load(t, &mem, want.PK), want)
}

// MemoryStore refuses a result or an answer that a table would refuse.
func TestMemoryStoreRefusesLargeRecords(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 401<<10)
	t.Run("a phase's result", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		_, err := idem.New(&mem, callertest.Anybody).Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (string, error) { return large, nil })
			return idem.Response{}, err
		})
		if err == nil || errors.Is(err, store.ErrUnknown) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a job", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		_, err := idem.New(&mem, callertest.Anybody).Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				tx.Stage(idem.NewJob("receipt", large))
				return idem.Response{}, nil
			})
		})
		if err == nil {
			t.Error("taken")
		}
	})
	t.Run("headers: the status is kept, as in a table", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		engine := idem.New(&mem, callertest.Anybody)
		if _, err := engine.Do(t.Context(), request, func(context.Context) (idem.Response, error) {
			return idem.Response{Header: http.Header{"Link": {large}}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrNotKept) {
			t.Errorf("a retry got %v, want not kept", err)
		}
	})
	t.Run("a body lies elsewhere", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		engine := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })
		if _, err := engine.Do(t.Context(), request, func(context.Context) (idem.Response, error) {
			return idem.Response{Body: []byte(large)}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if res, err := engine.Do(t.Context(), request, never(t)); err != nil || string(res.Body) != large {
			t.Errorf("a retry got %d bytes, %v", len(res.Body), err)
		}
	})
}
