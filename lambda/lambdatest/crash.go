package lambdatest

import (
	"context"
	"fmt"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/envelope"
)

// Handler is a handler of package lambda: a Handler, a Router or an EachHandler.
type Handler[Ev, Re any] interface {
	Handle(context.Context, Ev) (Re, error)
	Invoke(context.Context, []byte) ([]byte, error)
}

// CrashEverywhere is [idemtest.CrashEverywhere] for a handler of package lambda. The
// function start makes the handler anew in each process, with an engine from
// World.Engine and with the World's clients. Where the client would retry, the test
// sends ev again. Where the completer would run, the test invokes the handler with the
// record's ticket. Batches have no completer. An answer of 500 or above, and a batch
// that reports a failure, count as errors. CrashOptions.Engine has no effect, because
// start sets the engine's options.
func CrashEverywhere[H Handler[Ev, Re], Ev, Re any](t testing.TB, start func(*idemtest.World) H, ev Ev, check func(testing.TB, *idemtest.World, Re), optFns ...func(*idemtest.CrashOptions)) {
	t.Helper()
	idemtest.CrashProgram(t, func(w *idemtest.World) idemtest.Program[Re] {
		h := start(w)
		return idemtest.Program[Re]{
			Send: func(ctx context.Context) (Re, bool, error) {
				before := len(w.Commits())
				re, err := h.Handle(ctx, ev)
				if err != nil {
					return re, false, err
				}
				a, err := read(re)
				if err == nil {
					err = a.failed()
				}
				return re, a.replayed || !a.http && len(w.Commits()) == before, err
			},
			Resume: func(ctx context.Context, ticket jobs.Ticket) error {
				out, err := h.Invoke(ctx, envelope.EncodeTicket(ticket))
				if err != nil {
					return err
				}
				outcome, err := envelope.ParseOutcome(out)
				switch {
				case err != nil:
					return err
				case outcome.Kind == envelope.Stuck:
					return fmt.Errorf("%w: %s", idem.ErrStuck, outcome.Error)
				case outcome.Kind != envelope.Done && outcome.Kind != envelope.Moved:
					return fmt.Errorf("the outcome is %s: %s", outcome.Kind, outcome.Error)
				}
				return nil
			},
			Diff: diff[Re],
		}
	}, check, optFns...)
}
