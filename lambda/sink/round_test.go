package sink_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
)

func first(n int, v verdict, rest ...verdict) []verdict {
	return append(slices.Repeat([]verdict{v}, n), rest...)
}

// A sink that is down costs a call, not one for each of the jobs that wait.
func TestSinkThatIsDownCostsACall(t *testing.T) {
	t.Parallel()
	const n = 1000
	for name, err := range map[string]error{
		"no answer": errors.New("connection refused"), "broken": answer(500, ""), "throttled": answer(400, "ThrottlingException"),
		"not allowed": answer(403, "AccessDenied"), "not there": answer(400, "AWS.SimpleQueueService.NonExistentQueue"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
				t.Helper()
				f.whole = func([]string) error { return err }
				tried := 10
				if single(name) {
					tried = 1
				}
				want := append(first(tried, down), first(n-tried, held)...)
				if diff := cmp.Diff(want, verdicts(s.Deliver(t.Context(), deliveries(n)), n)); diff != "" || len(f.calls) != 1 {
					t.Errorf("%d calls, -want +got:\n%s", len(f.calls), diff)
				}
			})
		})
	}
}

// The same where the answer is 200, and blames the service for each entry.
func TestSinkThatIsDownForAllEntriesCostsACall(t *testing.T) {
	t.Parallel()
	eachBatching(t, func(t *testing.T, f *fake, s jobs.Sink) {
		t.Helper()
		f.entry = func(string) (string, bool) { return "ThrottlingException", true }
		if diff := cmp.Diff(first(10, down, first(5, held)...), verdicts(s.Deliver(t.Context(), deliveries(15)), 15)); diff != "" || len(f.calls) != 1 {
			t.Errorf("%d calls, -want +got:\n%s", len(f.calls), diff)
		}
		f.calls, f.entry = nil, func(id string) (string, bool) {
			return map[bool]string{true: "ThrottlingException"}[id != "op-a.0.0"], true
		}
		if diff := cmp.Diff(append([]verdict{taken}, first(14, down)...), verdicts(s.Deliver(t.Context(), deliveries(15)), 15)); diff != "" || len(f.calls) != 2 {
			t.Errorf("one was taken: %d calls, -want +got:\n%s", len(f.calls), diff)
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
		if diff := cmp.Diff([]verdict{taken, down, held, held}, verdicts(s.Deliver(t.Context(), deliveries(4)), 4)); diff != "" || names(f.calls) != "abcd a b" {
			t.Errorf("calls %q, -want +got:\n%s", names(f.calls), diff)
		}
	})
}

// A refusal that nobody documents may be for what the job holds, or for how the
// sink is set up. The other jobs tell: where one was taken, each that was refused
// counts. Where none was, one counts: a bad job is parked in the end, and an
// outage doesn't park what comes by.
func TestUnknownRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		good string // the jobs that are taken
		want []verdict
	}{
		"one, alone":        {"", []verdict{counted}},
		"one of several":    {"acd", []verdict{taken, counted, taken, taken}},
		"all but the last":  {"d", []verdict{counted, counted, counted, taken}},
		"all but the first": {"a", append([]verdict{taken}, first(11, counted)...)},
		"all":               {"", []verdict{counted, down, down, down}},
		"all of many":       {"", append(first(1, counted), append(first(9, down), first(990, held)...)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, _ string, f *fake, s jobs.Sink) {
				t.Helper()
				f.whole = func(ids []string) error {
					for _, id := range ids {
						if !slices.ContainsFunc([]rune(tt.good), func(c rune) bool { return id == "op-"+string(c)+".0.0" }) {
							return answer(400, "NobodyDocumentsThis")
						}
					}
					return nil
				}
				if diff := cmp.Diff(tt.want, verdicts(s.Deliver(t.Context(), deliveries(len(tt.want))), len(tt.want))); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if tt.good == "" && len(f.calls) > 11 {
					t.Errorf("%d calls", len(f.calls))
				}
			})
		})
	}
}

// An answer that says "too large" is the job's fault, whatever its code: the sink
// takes the others, and each is told so, though none was taken.
func TestTooLargeIsTheJobsFault(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ string, f *fake, s jobs.Sink) {
		t.Helper()
		f.whole = func([]string) error { return answer(413, "NobodyDocumentsThis") }
		if diff := cmp.Diff([]verdict{counted, counted, counted}, verdicts(s.Deliver(t.Context(), deliveries(3)), 3)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		f.whole = func(ids []string) error {
			if slices.Contains(ids, "op-b.0.0") {
				return answer(413, "NobodyDocumentsThis")
			}
			return nil
		}
		if diff := cmp.Diff([]verdict{taken, counted}, verdicts(s.Deliver(t.Context(), deliveries(2)), 2)); diff != "" {
			t.Errorf("one of two: -want +got:\n%s", diff)
		}
	})
}

// The same for entries of a call that the service takes in part.
func TestUnknownRefusalsOfEntries(t *testing.T) {
	t.Parallel()
	eachBatching(t, func(t *testing.T, f *fake, s jobs.Sink) {
		t.Helper()
		bad := func(id string) bool { return id != "op-b.0.0" }
		f.entry = func(id string) (string, bool) { return map[bool]string{true: "NobodyDocumentsThis"}[bad(id)], true }
		if diff := cmp.Diff([]verdict{counted, taken, counted}, verdicts(s.Deliver(t.Context(), deliveries(3)), 3)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		bad = func(string) bool { return true }
		if diff := cmp.Diff([]verdict{counted, down, down}, verdicts(s.Deliver(t.Context(), deliveries(3)), 3)); diff != "" {
			t.Errorf("none is taken: -want +got:\n%s", diff)
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
			one := func(i int) verdict {
				t.Helper()
				return verdicts(s.Deliver(t.Context(), deliveries(i + 1)[i:]), 1)[0]
			}
			want := func(name string, got []verdict, want ...verdict) {
				t.Helper()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", name, diff)
				}
			}
			refuse := func([]string) error { return answer(400, "NobodyDocumentsThis") }
			f.whole = refuse
			want("nothing is known of the sink", []verdict{one(0), one(1), one(0), one(2)}, counted, down, counted, down)
			time.Sleep(2 * time.Minute) //nolint:forbidigo // by the bubble's clock
			want("its next try", []verdict{one(1), one(0), one(1)}, down, counted, down)
			time.Sleep(3 * time.Minute) //nolint:forbidigo // by the bubble's clock
			want("the suspect is parked", []verdict{one(1), one(2), one(1)}, counted, down, counted)
			f.whole = nil
			want("the sink takes jobs", []verdict{one(3)}, taken)
			f.whole = refuse
			want("jobs are at fault", []verdict{one(0), one(1), one(2)}, counted, counted, counted)
			time.Sleep(time.Minute) //nolint:forbidigo // by the bubble's clock
			want("later nobody knows", []verdict{one(0), one(2)}, down, counted)
		})
	})
}
