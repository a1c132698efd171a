package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
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

// Requests of different keys and scopes have nothing to do with one another.
func TestRecorderTellsKeysApart(t *testing.T) {
	var r Recorder
	eng := idem.New(new(idem.MemoryStore))
	for _, key := range []string{"k1", "k2"} {
		for _, scope := range []string{"ann", "bob"} {
			req := order(key, key+scope)
			req.Scope = scope
			var a app
			for range 2 {
				if _, err := r.Do(storetest.Limited(t), eng, req, a.run); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(r.history) != 4 {
		t.Errorf("%d histories, want 4", len(r.history))
	}
	r.Check(t)
}

// Do notes an outcome as what it is.
func TestRecorderDo(t *testing.T) {
	ctx := storetest.Limited(t)
	store := idemtest.Faulty(new(idem.MemoryStore), nil)
	eng := idem.New(store, func(o *idem.Options) {
		o.Scope = func(context.Context, *idem.Request) (string, error) { return "all", nil }
	})
	down := func(context.Context, idemtest.Call) idemtest.Fault { return idemtest.Fault{Err: errDown} }
	var r Recorder
	var a app
	for _, step := range []struct {
		key  string
		body string
		plan idemtest.Plan
		fn   handler
		want []kind
	}{
		{"k1", "1", nil, a.fail(errHandler), []kind{began, released}},
		{"k1", "1", idemtest.At(idemtest.Commit, 0, idemtest.Fault{Err: errDown}), a.fail(errHandler), []kind{began, endUnknown}},
		{"k1", "1", nil, a.run, []kind{inFlight}},
		{"k1", "2", nil, a.run, []kind{mismatch}},
		{"k1", "1", idemtest.At(idemtest.Claim, 0, idemtest.Fault{Err: errDown}), a.run, []kind{inFlight}}, // the record was read
		{"k1", "1", down, a.run, []kind{beginUnknown}},
		{"k2", "1", nil, a.run, []kind{began, stored}},
		{"k2", "1", nil, a.run, []kind{replayed}},
	} {
		r.history = nil
		store.Reset(step.plan)
		res, err := r.Do(ctx, eng, order(step.key, step.body), step.fn)
		var got []kind
		for _, op := range r.history[fmt.Sprintf("%q %q", "", step.key)] {
			got = append(got, op.Input.(event).kind)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%v was noted as %q, want %q", result{res, err}, got, step.want)
		}
	}

	r.history = nil
	func() {
		defer func() { _ = recover() }()
		_, _ = r.Do(ctx, eng, order("k3", "1"), func(context.Context) (idem.Response, error) { panic("boom") })
	}()
	if _, err := r.Do(ctx, eng, order("k3", "2"), a.run); err != nil {
		t.Error(err)
	}
	r.Check(t) // the second request found the key given back

	r.history = nil
	off := idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff })
	if _, err := r.Do(ctx, off, order("k", "1"), a.run); err != nil || r.history != nil {
		t.Errorf("what ran unprotected was noted: %v, %v", r.history, err)
	}
}

// A claim that is sent before the leases end, and applied after that, has a lease that
// is over: another request takes it over. A claim that is sent afterwards has not.
func TestRecorderKnowsLateClaims(t *testing.T) {
	for name, tt := range map[string]struct {
		before bool // the claim is sent before the leases end
		legal  bool
	}{
		"sent before": {true, true},
		"sent after":  {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var r Recorder
			r.script(t, "1b:began")
			called := r.now()
			r.EndLeases(func() {})
			if !tt.before {
				called = r.now()
			}
			r.script(t, "3:mismatch, 1b:released")
			r.note("k", called, r.now(), event{kind: began, request: "a", attempt: 2})
			r.script(t, "4:began 4:stored x 2:replayed! x")
			got := &verdict{TB: t}
			r.Check(got)
			if legal := got.failed == ""; legal != tt.legal {
				t.Errorf("legal is %t, want %t\n%s", legal, tt.legal, got.failed)
			}
		})
	}
}

// An attempt takes an abandoned key, and the answer is lost. The attempt that it took the
// key from is refused. Then the leases end, a third takes over, and only then does the
// second hear of its own write: it is told of the third. Nothing ran twice.
func TestRecorderKnowsUnseenTakeOvers(t *testing.T) {
	for name, lossy := range map[string]bool{"answers may be lost": true, "no answer is lost": false} {
		t.Run(name, func(t *testing.T) {
			r := Recorder{Lossy: lossy}
			ctx, clock, mem := storetest.Limited(t), idemtest.NewClock(), new(idem.MemoryStore)
			// begin starts an attempt, and returns when its handler runs. finish lets the handler return.
			begin := func(plan idemtest.Plan, runs bool) (finish func() error) {
				engine := idem.New(idemtest.Faulty(mem, plan), func(o *idem.Options) { o.Now = clock.Now })
				entered, free, end := make(chan struct{}), make(chan struct{}), make(chan error, 1)
				go func() {
					_, err := r.Do(ctx, engine, order("k", "1"), func(context.Context) (idem.Response, error) {
						close(entered)
						<-free
						return idem.Response{Status: http.StatusCreated}, nil
					})
					end <- err
				}()
				if runs {
					<-entered
				}
				return func() error { close(free); return <-end }
			}
			refused := func(err error) {
				if !errors.Is(err, idem.ErrInFlight) {
					t.Errorf("%v, want %v", err, idem.ErrInFlight)
				}
			}
			endLeases := func() { r.EndLeases(func() { clock.Advance(storetest.LeaseOver) }) }

			finishFirst := begin(nil, true)
			endLeases()
			var finishThird func() error
			lost := false
			finishSecond := begin(func(_ context.Context, c idemtest.Call) idemtest.Fault {
				switch {
				case lost && finishThird == nil:
					refused(finishFirst())
					endLeases()
					finishThird = begin(nil, true)
				case c.Verb == idemtest.Commit && !lost:
					lost = true
					return idemtest.Fault{Err: store.ErrUnknown, Applied: true}
				}
				return idemtest.Fault{}
			}, false)
			refused(finishSecond())
			if err := finishThird(); err != nil {
				t.Error(err)
			}
			got := &verdict{TB: t}
			r.Check(got)
			if legal := got.failed == ""; legal != lossy {
				t.Errorf("legal is %t, want %t\n%s", legal, lossy, got.failed)
			}
		})
	}
}
