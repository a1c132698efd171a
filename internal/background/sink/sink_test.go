package sink_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/base/errlist"
)

// Verdicts are letters: what became of a delivery.
const (
	taken   = "t"
	counted = "c" // against its job
	down    = "d" // the sink is
	held    = "h" // not tried
)

func verdictOf(err error) string {
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

func verdicts(errs []error, n int) string {
	all := ""
	for _, err := range errlist.Pad(errs, n) {
		all += verdictOf(err)
	}
	return all
}

// deliver delivers a batch, and returns its verdicts.
func deliver(t *testing.T, s jobs.Sink, batch []jobs.Delivery) string {
	t.Helper()
	return verdicts(s.Deliver(t.Context(), batch), len(batch))
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
			parts[i] += letter(id)
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
		if s.Deliver(t.Context(), nil); len(f.calls) != 0 {
			t.Errorf("nothing is sent by %v", f.calls)
		}
		want := "abcdefghij klmnopqrst uvw"
		if single(name) {
			want = strings.Join(strings.Split("abcdefghijklmnopqrstuvw", ""), " ")
		}
		if got := deliver(t, s, deliveries(23)); got != strings.Repeat(taken, 23) || names(f.calls) != want {
			t.Errorf("%s by calls %q, want %q", got, names(f.calls), want)
		}
	})
}

// letter is the name of a job.
func letter(id string) string { return strings.TrimSuffix(strings.TrimPrefix(id, "op-"), ".0.0") }

// A whole call that fails: where what was sent is to blame, each is sent alone to find out
// which; else none is counted, and the rest is not tried: a sink that is down costs a call.
//
// A refusal that nobody documents may be for what the job holds, or for how the sink is set
// up. The other jobs tell: where one was taken, each that was refused counts. Where none
// was, one counts: a bad job is parked in the end, and an outage doesn't park what comes by.
func TestCallFails(t *testing.T) {
	t.Parallel()
	unknown := answer(400, "NobodyDocumentsThis")
	for name, tt := range map[string]struct {
		n      int
		bad    string // a call with one of these fails; "*": each call
		err    error
		want   string
		calls  string // of those that send several
		single string // verdicts of those that don't; "": the same
	}{
		"one is too large":        {3, "b", answer(413, ""), "tct", "abc a b c", ""},
		"one has bad content":     {3, "c", answer(400, "InvalidMessageContents"), "ttc", "abc a b c", ""},
		"one has a bad parameter": {3, "b", answer(400, "ValidationException"), "tct", "abc a b c", ""},
		"all are too large":       {3, "*", answer(413, "NobodyDocumentsThis"), "ccc", "abc a b c", ""},
		"throttled":               {3, "b", answer(400, "ThrottlingException"), "ddd", "abc", "tdh"},
		"forbidden":               {3, "b", answer(400, "AccessDeniedException"), "ddd", "abc", "tdh"},
		"nobody there":            {3, "b", answer(404, "ResourceNotFoundException"), "ddd", "abc", "tdh"},
		"no answer":               {3, "b", errors.New("connection reset"), "ddd", "abc", "tdh"},
		"no queue":                {3, "*", answer(400, "AWS.SimpleQueueService.NonExistentQueue"), "ddd", "abc", "dhh"},
		"no answer to many":       {12, "*", errors.New("connection reset"), "ddddddddddhh", "abcdefghij", "dhhhhhhhhhhh"},
		"unknown, of one":         {1, "*", unknown, "c", "a", ""},
		"unknown, of one of many": {4, "b", unknown, "tctt", "abcd a b c d", ""},
		"unknown, but of one":     {4, "abc", unknown, "ccct", "abcd a b c d", ""},
		"unknown, and the last":   {12, "bcdefghijkl", unknown, "tccccccccccc", "abcdefghij a b c d e f g h i j kl k l", ""},
		"unknown, of all":         {4, "*", unknown, "cddd", "abcd a b c d", ""},
		"unknown, of many":        {13, "*", unknown, "cdddddddddhhh", "abcdefghij a b c d e f g h i j", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
				t.Helper()
				f.whole = func(ids []string) error {
					if tt.bad == "*" || slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(tt.bad, letter(id)) }) {
						return tt.err
					}
					return nil
				}
				want := tt.want
				if single(name) && tt.single != "" {
					want = tt.single
				}
				if got := deliver(t, s, deliveries(tt.n)); got != want || !single(name) && names(f.calls) != tt.calls {
					t.Errorf("%s by calls %q, want %s by %q", got, names(f.calls), want, tt.calls)
				}
			})
		})
	}
}

// Of an error whose code nobody knows, the status tells the cause. A job is parked for its
// own fault only.
func TestBlameByStatus(t *testing.T) {
	t.Parallel()
	for status := 400; status < 600; status++ {
		want := "cd" // in doubt
		switch {
		case status == 413:
			want = "cc"
		case status >= 500 || slices.Contains([]int{401, 403, 404, 407, 408, 409, 425, 429}, status):
			want = "dd"
		}
		f := &fake{whole: func([]string) error { return answer(status, "NobodyDocumentsThis") }}
		if got := deliver(t, sinks(f)["queue"], deliveries(2)); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}

// Each entry is judged by its own error. A sink that takes none, and blames itself for each,
// is down. What an answer doesn't tell of has not been taken, for all that is known.
func TestPartOfACallFails(t *testing.T) {
	t.Parallel()
	const throttled, unknown = "ThrottlingException", "NobodyDocumentsThis"
	for name, tt := range map[string]struct {
		n     int
		code  func(job string) string
		want  string
		calls int
	}{
		"each its own": {7, func(job string) string { // MalformedDetail blames what was sent, for all of them
			return map[string]string{"b": "MalformedDetail", "d": "InternalError", "e": throttled, "f": "AccessDeniedException"}[job]
		}, "tctdddt", 1},
		"all are throttled":         {15, func(string) string { return throttled }, "ddddddddddhhhhh", 1},
		"but one":                   {15, func(job string) string { return map[bool]string{true: throttled}[job != "a"] }, "tdddddddddddddd", 2},
		"unknown, and one is taken": {3, func(job string) string { return map[bool]string{true: unknown}[job != "b"] }, "ctc", 1},
		"unknown, of all":           {3, func(string) string { return unknown }, "cdd", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBatching(t, func(t *testing.T, f *fake, s jobs.Sink) {
				t.Helper()
				f.entry = func(id string) (string, bool) { code := tt.code(letter(id)); return code, code != "InternalError" }
				if got := deliver(t, s, deliveries(tt.n)); got != tt.want || len(f.calls) != tt.calls {
					t.Errorf("%s by %d calls, want %s by %d", got, len(f.calls), tt.want, tt.calls)
				}
			})
		})
	}
	each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
		t.Helper()
		f.mute = true
		want := map[bool]string{false: "dd", true: "dh"}[single(name)]
		if got := deliver(t, s, deliveries(2)); got != want {
			t.Errorf("of a mute answer: %s, want %s", got, want)
		}
	})
}

// A sink that goes down while a refused batch is taken apart isn't asked for the
// rest of it.
func TestSinkThatGoesDownInASplit(t *testing.T) {
	t.Parallel()
	eachBatching(t, func(t *testing.T, f *fake, s jobs.Sink) {
		t.Helper()
		f.whole = func(ids []string) error {
			switch {
			case len(ids) > 1:
				return answer(413, "")
			case ids[0] == "op-b.0.0":
				return errors.New("connection reset")
			}
			return nil
		}
		if got := deliver(t, s, deliveries(4)); got != "tdhh" || names(f.calls) != "abcd a b" {
			t.Errorf("%s by calls %q, want tdhh by abcd a b", got, names(f.calls))
		}
	})
}

// A worker's tickets bring the jobs of one operation each. A sink that refuses
// everything has one suspect all the same, and the next one after the first is parked.
func TestRefusedAloneThereIsOneSuspect(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ string, f *fake, s jobs.Sink) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			for i, step := range []struct {
				later   time.Duration
				refused bool
				jobs    string // each delivered alone
				want    string
			}{
				{0, true, "abac", "cdcd"}, // nothing is known of the sink
				{2 * time.Minute, true, "bab", "dcd"},
				{3*time.Minute - 1, true, "b", "d"},
				{1, true, "bcb", "cdc"}, // the suspect is parked
				{0, false, "d", "t"},
				{time.Minute - 1, true, "abc", "ccc"}, // the jobs are at fault
				{1, true, "ac", "dc"},                 // later nobody knows
			} {
				time.Sleep(step.later) //nolint:forbidigo // by the bubble's clock
				f.whole = func([]string) error { return map[bool]error{true: answer(400, "NobodyDocumentsThis")}[step.refused] }
				got := ""
				for _, job := range step.jobs {
					n := int(job - 'a')
					got += deliver(t, s, deliveries(n + 1)[n:])
				}
				if got != step.want {
					t.Errorf("step %d: %s of %s, want %s", i, got, step.jobs, step.want)
				}
			}
		})
	})
}

// A group keeps its order: no call has two of it, and after a failure the rest is held back.
// Others go on. A standard queue has no order to keep.
func TestGroupsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sink, groups, bad, want, calls string
	}{
		{"fifo queue", "xyxxyz", "", "tttttt", "abf ce d"},
		{"fifo topic", "xyxxyz", "", "tttttt", "abf ce d"},
		{"fifo queue", "xyxxyz", "a", "cthhtt", "abf e"},
		{"fifo topic", "xyxxyz", "a", "cthhtt", "abf e"},
		{"function", "xyx", "a", "cth", "a b"},
		{"machine", "xyx", "a", "cth", "a b"},
		{"queue", "xxx", "", "ttt", "abc"},
		{"queue", "xxxxxxxxxxxx", "a", "cttttttttttt", "abcdefghij kl"},
	} {
		f := &fake{entry: func(id string) (string, bool) {
			return map[bool]string{true: "InvalidMessageContents"}[letter(id) == tt.bad], true
		}}
		if single(tt.sink) {
			f.whole = func(ids []string) error {
				return map[bool]error{true: answer(413, "RequestTooLargeException")}[letter(ids[0]) == tt.bad]
			}
		}
		got := deliver(t, sinks(f)[tt.sink], deliveries(len(tt.groups), strings.Split(tt.groups, "")...))
		if got != tt.want || names(f.calls) != tt.calls {
			t.Errorf("%s, %s: %s by calls %q, want %s by %q", tt.sink, tt.groups, got, names(f.calls), tt.want, tt.calls)
		}
	}
}

// Once time is up nothing is sent; what was sent keeps its verdict.
func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		f.whole = func([]string) error { cancel(); return nil }
		got := verdicts(s.Deliver(ctx, deliveries(12)), 12)
		want := map[bool]string{false: "tttttttttthh", true: "thhhhhhhhhhh"}[single(name)]
		if got != want || len(f.calls) != 1 {
			t.Errorf("%s by %d calls, want %s by one", got, len(f.calls), want)
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
		"machine: empty alias": func() { sink.NewStateMachine(&sfn.Client{}, shipping+":") },
		"machine: no name":     func() { sink.NewStateMachine(&sfn.Client{}, strings.TrimSuffix(shipping, "shipping")) },
		"machine: of Lambda":   func() { sink.NewStateMachine(&sfn.Client{}, strings.Replace(shipping, "states", "lambda", 1)) },
		"machine: too long":    func() { sink.NewStateMachine(&sfn.Client{}, shipping+":live:x") },
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
