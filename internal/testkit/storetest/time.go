package storetest

import (
	"context"
	"testing"
	"time"
)

// Limit is the time limit of a request. The request's lease ends a little after this
// limit.
const Limit = 2 * time.Minute

// LeaseOver is longer than every lease.
const LeaseOver = 2 * Limit

// Limited returns a context that ends after [Limit].
func Limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx
}
