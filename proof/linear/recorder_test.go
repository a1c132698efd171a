package linear

import (
	"strings"
	"testing"
)

// What one key's clients can and can't be told. Events are written as
// "attempt:kind answer"; each follows the one before, or with "|" in front runs
// beside it.
func TestRecorderCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		history string
		legal   bool
	}{
		"a request and its replay":                       {"1:began 1:stored x, 2:replayed x", true},
		"another answer under the same key":              {"1:began 1:stored x, 2:replayed y", false},
		"a replay of nothing":                            {"2:replayed x, 1:began 1:stored x", false},
		"two runs":                                       {"1:began 1:stored x, 2:began 2:stored x", false},
		"two runs at once":                               {"1:began |2:began 1:stored x 2:stored y", false},
		"in flight while it runs":                        {"1:began 2:in_flight 1:stored x", true},
		"in flight after the answer":                     {"1:began 1:stored x, 2:in_flight", false},
		"in flight before anything":                      {"2:in_flight, 1:began", false},
		"in flight beside a claim":                       {"1:began |2:in_flight 1:stored x", true},
		"a mismatch while it runs and afterwards":        {"1:began 2b:mismatch 1:stored x, 2b:mismatch", true},
		"a mismatch of the same request":                 {"1:began 1:stored x, 2:mismatch", false},
		"a mismatch with nothing":                        {"2b:mismatch", false},
		"a replay to another request":                    {"1:began 1:stored x, 2b:replayed x", false},
		"a released key is free, for other requests too": {"1:began 1:released, 2b:began 2b:stored y, 1:mismatch", true},
		"in flight after a release":                      {"1:began 1:released, 2:in_flight", false},
		"an answer after a release":                      {"1:began 1:released, 2:replayed x", false},
		"a take-over without the end of the lease":       {"1:began, 2:began", false},
		"a take-over after it":                           {"1:began 0:leases_are_over 2:began 2:stored y 1:replayed! y", true},
		"a take-over by another request":                 {"1:began 0:leases_are_over 2b:began", false},
		"the holder finishes though its lease is over":   {"1:began 0:leases_are_over 1:stored x, 2:replayed x", true},
		"the holder finishes though it was taken over":   {"1:began 0:leases_are_over 2:began 1:stored x", false},
		"a late answer of its own":                       {"1:began 0:leases_are_over 2:began 2:stored y 1:replayed! x", false},
		"lease lost":                                     {"1:began 0:leases_are_over 2:began 1:lease_lost! 2:stored y", true},
		"lease lost to nobody":                           {"1:began 1:lease_lost!, 2:in_flight", false},
		"lease lost to who found it given back":          {"1:began |1:maybe_released |1:lease_lost! |2:began 2:stored y", true},
		"in flight while its lease is over":              {"1:began 0:leases_are_over 2:in_flight", false},
		"released after a take-over":                     {"1:began 0:leases_are_over 2:began 2:released, 3:began 3:stored z", true},
		"and free for another request":                   {"1:began 0:leases_are_over 2:began 2:released, 3b:began", true},
		"a lost claim holds the key":                     {"1:begin_unknown, 2:in_flight", true},
		"or doesn't":                                     {"1:begin_unknown, 2:began 2:stored y", true},
		"or takes effect later":                          {"1:begin_unknown, 2b:began 2b:released, 3:in_flight", true},
		"but answers nothing":                            {"1:begin_unknown, 2:replayed x", false},
		"a lost finish shows":                            {"1:began 1:end_unknown x, 2:replayed x", true},
		"or doesn't yet":                                 {"1:began 1:end_unknown x, 2:in_flight 3:replayed x", true},
		"or gives the key back":                          {"1:began 1:end_unknown x, 2b:began", true},
		"but only one of them":                           {"1:began 1:end_unknown x, 2:replayed x, 3:in_flight", false},
		"an answer that was not kept":                    {"1:began 1:stored x, 2:not_kept, 3:not_kept", true},
		"is not there again later":                       {"1:began 1:stored x, 2:not_kept, 3:replayed x", false},
	} {
		t.Run(name, func(t *testing.T) {
			var r Recorder
			r.script(t, tt.history)
			got := &verdict{TB: t}
			r.Check(got)
			if legal := got.failed == ""; legal != tt.legal {
				t.Errorf("%s: legal is %t, want %t\n%s", tt.history, legal, tt.legal, got.failed)
			}
		})
	}
}

// script notes the events of a history.
func (r *Recorder) script(t *testing.T, history string) {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(history, ",", ""))
	for i := 0; i < len(words); i++ {
		word, beside := strings.CutPrefix(words[i], "|")
		who, what, ok := strings.Cut(word, ":")
		if !ok {
			t.Fatalf("%q is no event", word)
		}
		ev := event{request: "a"}
		if n, other := strings.CutSuffix(who, "b"); other {
			who, ev.request = n, "b"
		}
		ev.attempt = int(who[0] - '0')
		what, ev.overtaken = strings.CutSuffix(what, "!")
		ev.kind = kind(strings.ReplaceAll(what, "_", " "))
		if i+1 < len(words) && !strings.Contains(words[i+1], ":") {
			i++
			ev.answer = words[i]
		}
		called := r.now()
		if beside {
			called -= 2
		}
		if ev.kind == leasesOver {
			r.EndLeases(func() {})
			continue
		}
		r.note("k", called, r.now(), ev)
	}
}

// verdict takes the place of a test that may fail.
type verdict struct {
	testing.TB
	failed string
}

func (v *verdict) Helper() {}

func (v *verdict) Errorf(format string, args ...any) { v.failed += format }
