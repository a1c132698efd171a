package sink_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/lambda/sink"
)

// verdict is what became of a delivery.
type verdict string

const (
	taken   verdict = "taken"
	counted verdict = "counts against its job"
	down    verdict = "the sink is down"
	held    verdict = "not tried"
)

func verdictOf(err error) verdict {
	switch {
	case err == nil:
		return taken
	case errors.Is(err, jobs.ErrSinkDown):
		return down
	case errors.Is(err, jobs.ErrHeldBack):
		return held
	}
	return counted
}

func verdicts(errs []error, n int) []verdict {
	var all []verdict
	for _, err := range errlist.Pad(errs, n) {
		all = append(all, verdictOf(err))
	}
	return all
}

// deliveries are jobs named a, b, c…, each in the group of its place in groups,
// or in its own.
func deliveries(n int, groups ...string) []jobs.Delivery {
	batch := make([]jobs.Delivery, n)
	for i := range batch {
		name := string(rune('a' + i))
		batch[i] = jobs.Delivery{
			JobID: "op-" + name + ".0.0", Operation: "op-" + name, Kind: "mail", Args: json.RawMessage(`{"to":"` + name + `"}`), Group: "op-" + name,
		}
		if i < len(groups) {
			batch[i].Group = groups[i]
		}
	}
	return batch
}

// names are those of jobs in calls, as "ab c": calls are parted by a space.
func names(calls [][]string) string {
	parts := make([]string, len(calls))
	for i, c := range calls {
		for _, id := range c {
			parts[i] += strings.TrimSuffix(strings.TrimPrefix(id, "op-"), ".0.0")
		}
	}
	return strings.Join(parts, " ")
}

// fake is any of the services: it notes the job ids of each call, and answers as
// it is told.
type fake struct {
	calls [][]string
	whole func(ids []string) error                   // the error of a call; nil: none
	entry func(id string) (code string, sender bool) // of an entry; nil or "": taken
	mute  bool                                       // answers without a word about the entries
	last  any                                        // the request of the last call
}

func (f *fake) note(in any) { f.last = in }

func (f *fake) call(ids []string) error {
	f.calls = append(f.calls, ids)
	if f.whole == nil {
		return nil
	}
	return f.whole(ids)
}

func (f *fake) judge(id string) (string, bool) {
	if f.entry == nil {
		return "", false
	}
	return f.entry(id)
}

// answer is the error of a whole call, as a client gives it; code "": what a web
// server in front says.
func answer(status int, code string) error {
	err := errors.New("injected")
	if code != "" {
		err = &smithy.GenericAPIError{Code: code, Message: "injected"}
	}
	return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: response(status)}, Err: err}
}

// each runs a test on every sink.
func each(t *testing.T, test func(t *testing.T, name string, f *fake, s jobs.Sink)) {
	t.Helper()
	for name := range sinks(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			test(t, name, f, sinks(f)[name])
		})
	}
}

// eachBatching runs a test on the sinks that send several jobs in a call.
func eachBatching(t *testing.T, test func(t *testing.T, f *fake, s jobs.Sink)) {
	t.Helper()
	for name := range sinks(nil) {
		if single(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			test(t, f, sinks(f)[name])
		})
	}
}

func TestTenJobsACall(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
		t.Helper()
		if errs := s.Deliver(t.Context(), deliveries(23)); slices.ContainsFunc(verdicts(errs, 23), func(v verdict) bool { return v != taken }) {
			t.Errorf("got %v", errs)
		}
		want := "abcdefghij klmnopqrst uvw"
		if single(name) {
			want = strings.Join(strings.Split("abcdefghijklmnopqrstuvw", ""), " ")
		}
		if got := names(f.calls); got != want {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
}

func TestNothingIsNoCall(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ string, f *fake, s jobs.Sink) {
		t.Helper()
		if errs := s.Deliver(t.Context(), nil); len(errs) != 0 || len(f.calls) != 0 {
			t.Errorf("got %v after %v", errs, f.calls)
		}
	})
}

// Partial failures: each entry is judged by its own error.
func TestPartOfACallFails(t *testing.T) {
	t.Parallel()
	entry := func(id string) (string, bool) {
		switch id {
		case "op-b.0.0":
			return "MalformedDetail", true // blames what was sent, for all of them
		case "op-d.0.0":
			return "InternalError", false
		case "op-e.0.0":
			return "ThrottlingException", true
		case "op-f.0.0":
			return "AccessDeniedException", true
		}
		return "", false
	}
	eachBatching(t, func(t *testing.T, f *fake, s jobs.Sink) {
		t.Helper()
		f.entry = entry
		want := []verdict{taken, counted, taken, down, down, down, taken}
		if diff := cmp.Diff(want, verdicts(s.Deliver(t.Context(), deliveries(7)), 7)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if len(f.calls) != 1 {
			t.Errorf("calls %q", names(f.calls))
		}
	})
}

// A whole call that fails: where what was sent is to blame, each is sent alone
// to find out which; else none is counted.
func TestCallFails(t *testing.T) {
	t.Parallel()
	only := func(bad string, err error) func([]string) error {
		return func(ids []string) error {
			if slices.Contains(ids, "op-"+bad+".0.0") {
				return err
			}
			return nil
		}
	}
	for name, test := range map[string]struct {
		whole func([]string) error
		want  []verdict
		calls string // of those that send several
	}{
		"one is too large":        {only("b", answer(413, "")), []verdict{taken, counted, taken}, "abc a b c"},
		"one has bad content":     {only("c", answer(400, "InvalidMessageContents")), []verdict{taken, taken, counted}, "abc a b c"},
		"one has a bad parameter": {only("b", answer(400, "ValidationException")), []verdict{taken, counted, taken}, "abc a b c"},
		"one isn't liked":         {only("a", answer(422, "NobodyDocumentsThis")), []verdict{counted, taken, taken}, "abc a b c"},
		"throttled":               {only("b", answer(400, "ThrottlingException")), []verdict{down, down, down}, "abc"},
		"throttled, by class":     {only("b", answer(429, "NobodyDocumentsThis")), []verdict{down, down, down}, "abc"},
		"forbidden":               {only("b", answer(400, "AccessDeniedException")), []verdict{down, down, down}, "abc"},
		"forbidden, by class":     {only("b", answer(403, "NobodyDocumentsThis")), []verdict{down, down, down}, "abc"},
		"nobody there":            {only("b", answer(404, "ResourceNotFoundException")), []verdict{down, down, down}, "abc"},
		"broken":                  {only("b", answer(503, "NobodyDocumentsThis")), []verdict{down, down, down}, "abc"},
		"no answer":               {only("b", errors.New("connection reset")), []verdict{down, down, down}, "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
				t.Helper()
				f.whole = test.whole
				got, want, calls := verdicts(s.Deliver(t.Context(), deliveries(3)), 3), test.want, test.calls
				if single(name) {
					calls = "a b c"
					if want[0] == down {
						calls, want = "a b", []verdict{taken, down, held}
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if names(f.calls) != calls {
					t.Errorf("calls %q, want %q", names(f.calls), calls)
				}
			})
		})
	}
}

// What an answer doesn't tell of has not been taken, for all that is known.
func TestMuteAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
		t.Helper()
		f.mute = true
		want := []verdict{down, down}
		if single(name) {
			want = []verdict{down, held}
		}
		if diff := cmp.Diff(want, verdicts(s.Deliver(t.Context(), deliveries(2)), 2)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// A group keeps its order: no call has two of it, and after a failure the rest is
// held back. Others go on.
func TestGroupsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]func(*fake) jobs.Sink{
		"queue": func(f *fake) jobs.Sink { return sinks(f)["fifo queue"] },
		"topic": func(f *fake) jobs.Sink { return sinks(f)["fifo topic"] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			if errs := s(f).Deliver(t.Context(), deliveries(6, "x", "y", "x", "x", "y", "z")); verdictOf(errors.Join(errs...)) != taken {
				t.Errorf("got %v", errs)
			}
			if got, want := names(f.calls), "abf ce d"; got != want {
				t.Errorf("calls %q, want %q", got, want)
			}
			f = &fake{entry: func(id string) (string, bool) {
				if id == "op-a.0.0" {
					return "InvalidMessageContents", true
				}
				return "", false
			}}
			want := []verdict{counted, taken, held, held, taken, taken}
			if diff := cmp.Diff(want, verdicts(s(f).Deliver(t.Context(), deliveries(6, "x", "y", "x", "x", "y", "z")), 6)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got, want := names(f.calls), "abf e"; got != want {
				t.Errorf("calls %q, want %q", got, want)
			}
		})
	}
	for _, name := range []string{"function", "machine"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{whole: func(ids []string) error {
				if ids[0] == "op-a.0.0" {
					return answer(413, "RequestTooLargeException")
				}
				return nil
			}}
			if diff := cmp.Diff([]verdict{counted, taken, held}, verdicts(sinks(f)[name].Deliver(t.Context(), deliveries(3, "x", "y", "x")), 3)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("a standard queue has no order to keep", func(t *testing.T) {
		t.Parallel()
		f := &fake{}
		sinks(f)["queue"].Deliver(t.Context(), deliveries(3, "x", "x", "x"))
		if got := names(f.calls); got != "abc" {
			t.Errorf("calls %q", got)
		}
		f.entry = func(id string) (string, bool) {
			return map[bool]string{true: "InvalidMessageContents"}[id == "op-a.0.0"], true
		}
		got := verdicts(sinks(f)["queue"].Deliver(t.Context(), deliveries(12, slices.Repeat([]string{"x"}, 12)...)), 12)
		if diff := cmp.Diff(append([]verdict{counted}, first(11, taken)...), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// Once time is up nothing is sent; what was sent keeps its verdict.
func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		f.whole = func([]string) error { cancel(); return nil }
		got := verdicts(s.Deliver(ctx, deliveries(12)), 12)
		want := make([]verdict, 12)
		for i := range want {
			want[i] = taken
			if i >= 10 || single(name) && i > 0 {
				want[i] = held
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(f.calls) != 1 {
			t.Errorf("%d calls, -want +got:\n%s", len(f.calls), diff)
		}
	})
}

func TestMistakesAreRefused(t *testing.T) {
	t.Parallel()
	for name, fn := range map[string]func(){
		"queue: no client":    func() { sink.NewQueue(nil, "url") },
		"queue: no url":       func() { sink.NewQueue(&sqs.Client{}, "") },
		"queue: fair, FIFO":   func() { sink.NewQueue(&sqs.Client{}, "jobs.fifo", fairQueue) },
		"topic: fair, FIFO":   func() { sink.NewTopic(&sns.Client{}, "jobs.fifo", fairTopic) },
		"topic: no client":    func() { sink.NewTopic(nil, "arn") },
		"topic: no arn":       func() { sink.NewTopic(&sns.Client{}, "") },
		"bus: no client":      func() { sink.NewBus(nil, "default", "s") },
		"bus: no name":        func() { sink.NewBus(&eventbridge.Client{}, "", "s") },
		"bus: no source":      func() { sink.NewBus(&eventbridge.Client{}, "default", "") },
		"function: no client": func() { sink.NewFunction(nil, "f") },
		"function: no name":   func() { sink.NewFunction(&awslambda.Client{}, "") },
		"durable: no version": func() { sink.NewFunction(&awslambda.Client{}, "ship", durableFunction) },
		"durable: no alias": func() {
			sink.NewFunction(&awslambda.Client{}, "arn:aws:lambda:us-east-1:1:function:ship:", durableFunction)
		},
		"machine: no client": func() { sink.NewStateMachine(nil, shipping) },
		"machine: no arn":    func() { sink.NewStateMachine(&sfn.Client{}, "shipping") },
		"machine: an execution": func() {
			sink.NewStateMachine(&sfn.Client{}, "arn:aws:states:us-east-1:1:execution:shipping:x")
		},
		"machine: a map state": func() { sink.NewStateMachine(&sfn.Client{}, shipping+"/label") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			fn()
		})
	}
}

func durableFunction(o *sink.FunctionOptions) { o.Durable = true }
