package elasticmq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/servers"
)

// startTimeout limits the search of [Start]. It is long, because a first call may
// download 37 MB.
const startTimeout = 10 * time.Minute

// Start finds or starts a server for a test, as [Find] does, and closes it at the
// test's end. If this machine can't run a queue, Start skips the test, or fails it if a
// queue is [Required], and says what is missing. Every other error fails the test.
//
// If AWS_ENDPOINT_URL_SQS names an endpoint, all tests share that endpoint, so give
// queues unique names. Otherwise each call starts a separate process.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return startWith(tb, &servers.Missed, Find)
}

// Main runs a package's tests and returns the exit code. Before it returns, it prints
// how many tests were skipped because there was no queue, and what was missing. Main is
// for packages that need no servers except those of [Start].
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
