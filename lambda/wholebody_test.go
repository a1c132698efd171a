package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// twoBodies differ in their last byte.
func twoBodies(size int) (first, second string) {
	same := strings.Repeat("0123456789abcde\n", size/16)
	return same + "1", same + "2"
}

// A body counts to its last byte, in every format and however large it is: a request
// or record that differs there is refused.
func TestWholeBodyCounts(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"100 KB": 100 << 10, "5 MB": 5 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := twoBodies(size)
			for _, d := range doors() {
				t.Run(d.name, func(t *testing.T) {
					t.Parallel()
					h, runs := counted(func(context.Context, []byte) (idem.Response, error) { return idem.Response{Status: 204}, nil })
					send := d.open(t, idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
					c := newCall("k")
					c.header = http.Header{"Content-Type": {"text/asItIs"}, "Idempotency-Key": {"k"}}
					c.body = []byte(first)
					send(c).accepted(t, 204, "", false)
					other := c
					other.body = []byte(second)
					send(other).refused(t, 422, "idempotency_key_mismatch")
					send(c).accepted(t, 204, "", true)
					ran(t, runs, 1)
				})
			}
			t.Run("Direct", func(t *testing.T) {
				t.Parallel()
				type order struct{ ID, Note string }
				runs := 0
				h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[order, int](func(o order) (string, error) { return o.ID, nil }),
					func(context.Context, order) (int, error) { runs++; return runs, nil })
				payload := func(note string) []byte { return fill(t, map[string]any{"ID": "o-1"}, note, "Note") }
				if out, err := h.Invoke(t.Context(), payload(first)); err != nil || string(out) != "1" {
					t.Fatalf("%s, %v", out, err)
				}
				if out, err := h.Invoke(t.Context(), payload(second)); err == nil {
					t.Errorf("another order got %s", out)
				}
				if out, err := h.Invoke(t.Context(), payload(first)); err != nil || string(out) != "1" {
					t.Errorf("the same order: %s, %v", out, err)
				}
			})
			for _, s := range recordSources {
				if s.content != nil && (s.name == "SQS" || size <= 1<<20) { // decoding others takes seconds
					t.Run(s.name, s.whole(s.golden[0], s.as, first, second, s.content...))
				}
			}
			if size > 1<<20 {
				return
			}
			t.Run("SNS through SQS", wholeBody(lambda.SQS, "sqs_sns", asItIs, first, second, "body", "Message"))
			t.Run("an event through SQS", wholeBody(lambda.SQS, "sqs_eventbridge", asItIs, first, second, "body", "detail", "note"))
		})
	}
}

func asItIs(s string) string { return s }

// wholeBody delivers the first record of a golden event with each content at path,
// and the first once more.
func wholeBody[Ev, Rec, Re any](b lambda.Batch[Ev, Rec, Re], file string, as func(string) string, first, second string, path ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		runs, why := 0, error(nil)
		b.Failed = func(_ context.Context, _ Rec, err error) { why = err }
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(context.Context, Rec) error { runs++; return nil })
		ctx := invoked(t.Context(), functionARN)
		for _, tc := range []struct {
			content string
			refused bool
		}{{first, false}, {second, true}, {first, false}} {
			why = nil
			var ev map[string]any
			decode(t, loadBatch(t, file), &ev)
			if recs, ok := ev["Records"].([]any); ok {
				ev["Records"] = recs[:1]
			}
			fill(t, lastRecord(ev), as(tc.content), path...)
			payload, err := json.Marshal(ev)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Invoke(ctx, payload); errors.Is(why, idem.ErrMismatch) != tc.refused || !tc.refused && (why != nil || err != nil) || runs != 1 {
				t.Errorf("%v, %v, %d runs; refused: want %t", why, err, runs, tc.refused)
			}
		}
	}
}

// fill sets what path names in ev, also inside of JSON in a string, and returns ev as JSON.
func fill(t *testing.T, ev map[string]any, content string, path ...string) []byte {
	t.Helper()
	switch inner := ev[path[0]].(type) {
	case map[string]any:
		fill(t, inner, content, path[1:]...)
	case string:
		if len(path) == 1 {
			ev[path[0]] = content
			break
		}
		var of map[string]any
		decode(t, []byte(inner), &of)
		ev[path[0]] = string(fill(t, of, content, path[1:]...))
	default:
		ev[path[0]] = content
		if len(path) > 1 {
			ev[path[0]] = map[string]any{path[1]: content}
		}
	}
	b, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t *testing.T, b []byte, into *map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}
