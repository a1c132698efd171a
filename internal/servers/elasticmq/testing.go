package elasticmq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/servers"
)

// startTimeout limits the search of [Start]: a first call may download 37 MB.
const startTimeout = 10 * time.Minute

// Start finds or starts a server for a test, as [Find] does, and closes it at the
// test's end. If this machine can't run a queue, Start says what is missing, and skips the
// test; if a queue is [Required], the test fails. Every other error fails the test.
//
// Each call starts a separate process, unless AWS_ENDPOINT_URL_SQS names an endpoint. Then
// all tests share that endpoint, so give queues unique names.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return startWith(tb, &servers.Missed, Find)
}

// Main runs the tests of a package that needs no server except [Start]'s, and returns the
// exit code. It prints how many tests were skipped for lack of a queue, and why.
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
