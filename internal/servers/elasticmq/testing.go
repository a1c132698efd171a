package elasticmq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/servers"
)

// startTimeout bounds the search of [Start]: a first call may download 37 MB.
const startTimeout = 10 * time.Minute

// Start finds or starts a server for a test, as [Find] does, and closes it at the
// test's end. Where no queue is to be had the test is skipped with a message that
// names what is missing, or fails if one is [Required]. Every other error fails
// the test.
//
// Each call starts a process of its own, unless AWS_ENDPOINT_URL_SQS names an
// endpoint: that one is shared, so give queues names of the test's own.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return startWith(tb, &servers.Missed, Find)
}

// Main runs the tests of a package that has no other servers, and returns the exit
// code. One line says how many tests did not run for want of a queue, and why.
func Main(m interface{ Run() int }) int {
	defer servers.Missed.Tell()
	return m.Run()
}

func startWith(tb testing.TB, skips *servers.Skips, find func(context.Context) (*Server, error)) *Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	s, err := find(ctx)
	if errors.Is(err, ErrUnavailable) && !Required() {
		skips.Skip(tb, err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}
