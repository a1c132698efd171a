package sink_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/trace"
)

func sized(batch []jobs.Delivery, sizes ...int) []jobs.Delivery {
	for i, n := range sizes {
		batch[i].Args = json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`)
	}
	return batch
}

// No call is larger than its service takes; what is too large by itself goes alone,
// for the service to judge.
func TestCallsKeepTheSizeLimit(t *testing.T) {
	t.Parallel()
	const kb = 1 << 10
	for name, tt := range map[string]struct {
		sizes []int
		want  string
	}{
		"queue":      {[]int{400 * kb, 400 * kb, 400 * kb, 1100 * kb, kb}, "ab c d e"},
		"fifo queue": {[]int{400 * kb, 400 * kb, 400 * kb, 1100 * kb, kb}, "ab c d e"},
		"bus":        {[]int{400 * kb, 400 * kb, 400 * kb, 1100 * kb, kb}, "ab c d e"},
		"topic":      {[]int{100 * kb, 100 * kb, 100 * kb, 300 * kb, kb}, "ab c d e"},
		"fifo topic": {[]int{100 * kb, 100 * kb, 100 * kb, 300 * kb, kb}, "ab c d e"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			errs := sinks(f)[name].Deliver(t.Context(), sized(deliveries(5), tt.sizes...))
			if got := names(f.calls); verdictOf(errors.Join(errs...)) != taken || got != tt.want {
				t.Errorf("calls %q, want %q: %v", got, tt.want, errs)
			}
		})
	}
}

// counts is what AWS counts of the entries of the last call.
func counts(t *testing.T, f *fake) int {
	t.Helper()
	n := 0
	switch in := f.last.(type) {
	case *sqs.SendMessageBatchInput:
		for _, e := range in.Entries {
			n += len(aws.ToString(e.MessageBody))
			for name, a := range e.MessageAttributes {
				n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue))
			}
		}
	case *sns.PublishBatchInput:
		for _, e := range in.PublishBatchRequestEntries {
			n += len(aws.ToString(e.Message))
			for name, a := range e.MessageAttributes {
				n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue))
			}
		}
	case *eventbridge.PutEventsInput:
		for _, e := range in.Entries {
			n += len(aws.ToString(e.Source)) + len(aws.ToString(e.DetailType)) + len(aws.ToString(e.Detail))
		}
	default:
		t.Fatalf("a %T", f.last)
	}
	return n
}

// To the byte: two entries that are as large as a call may be go together, and
// with a byte more they don't. Names, types and values of attributes count.
func TestSizesAreCountedAsTheServiceCountsThem(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{
		"queue": 1 << 20, "fifo queue": 1 << 20, "topic": 256 << 10, "fifo topic": 256 << 10, "bus": 1_000_000 - 1,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			s := sinks(f)[name]
			two := func(bytes int) []jobs.Delivery {
				batch := sized(deliveries(2), 1000, bytes)
				batch[1].Trace = trace.Context{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=1"}
				return batch
			}
			s.Deliver(t.Context(), two(1000))
			fits := limit - counts(t, f) + 1000
			for more, want := range map[int]string{0: "ab", 1: "a b"} {
				f.calls = nil
				errs := s.Deliver(t.Context(), two(fits+more))
				if got := names(f.calls); verdictOf(errors.Join(errs...)) != taken || got != want {
					t.Errorf("%d bytes more than fit: calls %q, want %q: %v", more, got, want, errs)
				}
				if more == 0 && counts(t, f) != limit {
					t.Errorf("a full call has %d bytes, want %d", counts(t, f), limit)
				}
			}
		})
	}
}
