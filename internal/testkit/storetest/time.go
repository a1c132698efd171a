package storetest

import (
	"context"
	"testing"
	"time"
)

// Limit is the time a request has. With it, a lease ends after little more.
const Limit = 2 * time.Minute

// LeaseOver is beyond every lease.
const LeaseOver = 2 * Limit

// Limited returns a context with [Limit] left.
func Limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx
}
