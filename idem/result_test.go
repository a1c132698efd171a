package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A result that storing would change is refused before the commit: a resumed run
// would continue with another value.
func TestResultThatChangesInTheRecordIsRefused(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	_, err := do(t, idem.New(&mem, callertest.Anybody), answering(func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (any, error) {
			tx.Write(note("one"))
			return int64(1<<53 + 1), nil // read back into any, the value is a float64
		})
		return err
	}))
	if !errors.Is(err, idem.ErrResult) || len(mem.Writes()) != 0 {
		t.Errorf("got %v, wrote %v", err, written(&mem))
	}
}

// spelled is a type with its own JSON.
type spelled string

func (s spelled) MarshalJSON() ([]byte, error)  { return []byte(s), nil }
func (s *spelled) UnmarshalJSON(b []byte) error { *s = spelled(b); return nil }

// JSON that a type makes itself may not be UTF-8. An item would hold other bytes, and a
// provider would get other parameters under the same key.
func TestResultThatIsNotUTF8IsRefused(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]any{
		"a raw message":     json.RawMessage("\"caf\xe9\""),
		"in a struct":       struct{ Raw json.RawMessage }{json.RawMessage("\"\xff\"")},
		"in a list":         []json.RawMessage{json.RawMessage("1"), json.RawMessage("\"\xff\"")},
		"a name":            json.RawMessage("{\"\xff\":1}"),
		"a type of its own": spelled("\"\xff\""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := phaseOf(t, result); !errors.Is(err, idem.ErrResult) {
				t.Errorf("got %v, want ErrResult", err)
			}
		})
	}
	for name, result := range map[string]any{"a raw message": json.RawMessage(" {\"é\": \"<\\ud800\"}\n"), "a number": json.Number("1.0")} {
		if err := phaseOf(t, result); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// phaseOf runs a phase with this result, of its own type.
func phaseOf(t *testing.T, result any) error {
	t.Helper()
	run := func(ctx context.Context) (err error) {
		switch v := result.(type) {
		case json.RawMessage:
			_, err = idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (json.RawMessage, error) { return v, nil })
		case []json.RawMessage:
			_, err = idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) ([]json.RawMessage, error) { return v, nil })
		case struct{ Raw json.RawMessage }:
			_, err = idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (struct{ Raw json.RawMessage }, error) { return v, nil })
		case spelled:
			_, err = idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (spelled, error) { return v, nil })
		case json.Number:
			_, err = idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (json.Number, error) { return v, nil })
		}
		return err
	}
	var mem idem.MemoryStore
	_, err := do(t, idem.New(&mem), answering(run))
	return err
}
