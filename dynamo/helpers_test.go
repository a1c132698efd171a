package dynamo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
)

// table is a fresh table with a store on it.
type table struct{ *tabletest.Table }

func newTable(t testing.TB, optFns ...func(*dynamo.Options)) *table {
	t.Helper()
	return &table{tabletest.New(t, optFns...)}
}

// virtual is [tabletest.Virtual].
func virtual(t *testing.T, test func(t *testing.T, tab *table)) {
	t.Helper()
	tabletest.Virtual(t, func(t *testing.T, tab *tabletest.Table) {
		t.Helper()
		test(t, &table{tab})
	})
}

// withRetries runs test with a client that repeats requests, and with one that doesn't.
func withRetries(t *testing.T, test func(t *testing.T, tab *table)) {
	t.Helper()
	tabletest.WithRetries(t, func(t *testing.T, tab *tabletest.Table) {
		t.Helper()
		test(t, &table{tab})
	})
}

// persist sends a new request until no conflict is in its way: on a slow machine a
// conflict may outlast the five seconds for which the engine runs a phase again.
func persist(t *testing.T, engine *idem.Engine, fn func(context.Context) (idem.Response, error)) error {
	t.Helper()
	for {
		_, err := engine.Do(context.WithoutCancel(t.Context()), tabletest.Post(tabletest.NewKey(), "{}"), fn)
		if !errors.Is(err, idem.ErrConflict) {
			return err
		}
	}
}

type calls = map[string]int
