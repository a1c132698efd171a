package lambda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/samekey/samekey/idem"
)

// The error of an event names its first three failures, and how many more there are.
func TestBatchErrorNamesSome(t *testing.T) {
	t.Parallel()
	for n, want := range []string{
		"lambda: 0 of 9 records failed", "lambda: 1 of 9 records failed: 0: bad", "lambda: 2 of 9 records failed: 0: bad; 1: bad",
		"lambda: 3 of 9 records failed: 0: bad; 1: bad; 2: bad", "lambda: 4 of 9 records failed: 0: bad; 1: bad; 2: bad; and 1 more",
	} {
		e := &BatchError{Total: 9}
		for i := range n {
			e.Records = append(e.Records, RecordError{ID: fmt.Sprint(i), Err: errors.New("bad")})
		}
		if got := e.Error(); got != want {
			t.Errorf("%d failures: %q, want %q", n, got, want)
		}
	}
}

// An error of the engine is told once as such, and under its own name; one inside of another
// error is that error's business.
func TestWhoseErrorItIs(t *testing.T) {
	t.Parallel()
	own := &idem.Error{Op: "do", Err: idem.ErrInFlight}
	if got := engineError(own); got != error(own) { //nolint:errorlint // the very same
		t.Errorf("wrapped again: %v", got)
	}
	if got := engineError(nil); got != nil {
		t.Errorf("no error becomes %v", got)
	}
	other := fmt.Errorf("in a handler: %w", own)
	if got, ok := errors.AsType[*idem.Error](engineError(other)); !ok || got == own {
		t.Errorf("another error is not wrapped: %v", got)
	}
	if got := reported(other); got != other { //nolint:errorlint // the very same
		t.Errorf("another's error is told as %#v", got)
	}
	if got, ok := errors.AsType[messages.InvokeResponse_Error](reported(own)); !ok || got.Type != "IdempotencyInFlight" {
		t.Errorf("the engine's error is told as %#v", got)
	}
	plain := &idem.Error{Op: "do", Err: errors.New("x")}
	if got := reported(plain); got != error(plain) { //nolint:errorlint // the very same
		t.Errorf("one without a name is told as %#v", got)
	}
}

// A record that isn't begun for lack of time says why the time is over, if that is known.
func TestNoTimeSaysWhy(t *testing.T) {
	t.Parallel()
	cause := errors.New("shutdown")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := noTime(ctx); !errors.Is(err, ErrNotRun) || !errors.Is(err, idem.ErrNoTime) || strings.Contains(err.Error(), "nil") {
		t.Errorf("in time: %v", err)
	}
	if cancel(cause); !errors.Is(noTime(ctx), cause) {
		t.Errorf("after its end: %v", noTime(ctx))
	}
}

// An event whose type panics over a payload is one of another kind.
func TestDecodeRecovers(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{`{"Records":[{"dynamodb":{"NewImage":{"pk":{"L":["x"]}}}}]}`, `{"Records":[{"dynamodb":{"NewImage":{"pk":7}}}]}`, `[`} {
		if ev, err := decode[events.DynamoDBEvent]([]byte(payload)); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: decoded %+v, %v", payload, ev, err)
		}
	}
	if _, err := decode[panics]([]byte(`{"Records":[{"eventSource":"aws:sqs"}]}`)); !errors.Is(err, ErrEvent) || !strings.Contains(err.Error(), `"aws:sqs"`) {
		t.Errorf("a type that panics: %v", err)
	}
}

type panics struct{}

func (*panics) UnmarshalJSON([]byte) error { panic("a foreign payload") }
