package eventsource_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"go.uber.org/goleak"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// runner makes the closing of the shared database part of the run.
type runner func() int

func (r runner) Run() int { return r() }

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(runner(func() int { return dynamotest.Main(m) }))
}

// answer answers an invocation, whose number and names of records it gets.
type answer func(ctx context.Context, n int, names []string) ([]byte, error)

// function is a Lambda function that a test scripts. It keeps the names of the
// records it got: the keys of a stream's items, the bodies of a queue's
// messages.
type function struct {
	// answer is asked with the count of the invocation from 1 on and the names
	// in it; nil answers {}.
	answer answer

	mu      sync.Mutex
	batches [][]string
	at      []time.Time
	raw     [][]byte
}

func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	names := recordNames(payload)
	f.mu.Lock()
	f.batches = append(f.batches, names)
	f.at = append(f.at, time.Now())
	f.raw = append(f.raw, payload)
	n := len(f.batches)
	f.mu.Unlock()
	if f.answer == nil {
		return []byte("{}"), nil
	}
	return f.answer(ctx, n, names)
}

func recordNames(payload []byte) []string {
	var event struct {
		Records []struct {
			Body     string
			Dynamodb events.DynamoDBStreamRecord
		}
	}
	if err := json.Unmarshal(payload, &event); err != nil {
		return []string{err.Error()}
	}
	names := make([]string, 0, len(event.Records))
	for _, r := range event.Records {
		if key, ok := r.Dynamodb.Keys["pk"]; ok {
			names = append(names, key.String())
		} else {
			names = append(names, r.Body)
		}
	}
	return names
}

func (f *function) got() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([][]string(nil), f.batches...)
}

func (f *function) payload(i int) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.raw[i]
}

func (f *function) times() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Time(nil), f.at...)
}

func crash() error {
	return &lambdarun.FunctionError{Type: "errorString", Message: "no", RequestID: "6d3d9a37-28b6-4f43-9e4f-5d0b0a0a1c11"}
}

// failing answers with an error of the function's whenever one of these is in
// the batch.
func failing(bad ...string) answer {
	return func(_ context.Context, _ int, names []string) ([]byte, error) {
		if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(bad, name) }) {
			return nil, crash()
		}
		return []byte("{}"), nil
	}
}

// failures collects what goes to a destination.
type failures struct {
	mu  sync.Mutex
	all []eventsource.Failure
}

func (f *failures) take(_ context.Context, failure eventsource.Failure) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, failure)
	return nil
}

func (f *failures) got() []eventsource.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]eventsource.Failure(nil), f.all...)
}

// names returns the records of each failure, by its payload.
func (f *failures) names() [][]string {
	var names [][]string
	for _, failure := range f.got() {
		names = append(names, recordNames(failure.Payload))
	}
	return names
}

// watcher keeps what hooks are told.
type watcher struct {
	mu       sync.Mutex
	invoked  []eventsource.Invocation
	errs     []error
	filtered int
}

func (w *watcher) hooks() eventsource.Hooks {
	return eventsource.Hooks{
		Invoked: func(i eventsource.Invocation) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.invoked = append(w.invoked, i)
		},
		Error: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.errs = append(w.errs, err)
		},
		Filtered: func(n int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.filtered += n
		},
	}
}

func (w *watcher) invocations() []eventsource.Invocation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]eventsource.Invocation(nil), w.invoked...)
}

func (w *watcher) errors() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]error(nil), w.errs...)
}

func wantFiltered(t *testing.T, w *watcher, want int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.filtered != want {
		t.Errorf("filtered %d records, want %d", w.filtered, want)
	}
}
