package stream_test

import (
	"testing"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
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

type calls = map[string]int
