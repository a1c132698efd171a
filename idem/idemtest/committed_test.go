package idemtest_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/failtest"
)

type priced struct {
	Amount int `json:"amount"`
}

type put string

func (p put) String() string { return "put " + string(p) }
func (put) Err() error       { return nil }

// orders runs a handler once on a watched store.
func orders(t *testing.T, optFns ...func(*idem.Options)) *idemtest.FaultyStore {
	t.Helper()
	watched := idemtest.Watch(new(idem.MemoryStore))
	e := idem.New(watched, optFns...)
	_, err := e.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, func(ctx context.Context) (idem.Response, error) {
		for _, name := range []string{"priced", "stocked"} {
			_, err := idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (priced, error) {
				tx.Write(put(name))
				tx.Stage(idem.NewJob("index", priced{len(name)}))
				return priced{20}, nil
			})
			if err != nil {
				return idem.Response{}, err
			}
		}
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(put("paid"))
			tx.Stage(idem.NewJob("send_mail", priced{20}))
			return idem.Response{Status: 201}, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return watched
}

func TestCommitted(t *testing.T) {
	t.Parallel()
	log := orders(t)
	want := idemtest.Phase[priced]{Name: "stocked", Result: priced{20}, Writes: []string{"put stocked"}, Jobs: []idem.Job{idem.NewJob("index", priced{7})}}
	if diff := cmp.Diff(want, idemtest.Committed[priced](t, log, "stocked")); diff != "" {
		t.Errorf("phase (-want +got):\n%s", diff)
	}
	wantFinal := idemtest.Final{
		Response: idem.Response{Status: 201}, Writes: []string{"put paid"},
		Jobs: []idem.Job{idem.NewJob("send_mail", priced{20})}, Phases: []string{"priced", "stocked"},
	}
	if diff := cmp.Diff(wantFinal, idemtest.Finished(t, log)); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(priced{20}, idemtest.Staged[priced](t, log, "send_mail")); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]priced{{6}, {7}}, idemtest.AllStaged[priced](t, log, "index")); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if got := idemtest.AllStaged[priced](t, log, "refund"); got != nil {
		t.Errorf("of another kind: %v", got)
	}
}

func TestWhatIsNotThereFails(t *testing.T) {
	t.Parallel()
	log := orders(t)
	twice := idemtest.Watch(new(idem.MemoryStore))
	for _, key := range []string{"1", "2"} {
		_, err := idem.New(twice).Do(t.Context(), idem.Request{Key: key, Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "priced", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			if err != nil {
				return idem.Response{}, err
			}
			_, err = idem.Foreign(ctx, "called", func(context.Context, *idem.Tx) (int, error) {
				return 1, idem.Respond(idem.Response{Status: 201})
			}, idem.NotIdempotent())
			return idem.Response{}, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	empty := idemtest.Watch(new(idem.MemoryStore))
	for _, tt := range []struct {
		name string
		test func(testing.TB)
		want string
	}{
		{"no such phase", func(t testing.TB) { idemtest.Committed[priced](t, log, "charged") }, `phase "charged" was committed 0 times, want once; committed: ["priced" "stocked"]`},
		{"a phase of two operations", func(t testing.TB) { idemtest.Committed[int](t, twice, "priced") }, `phase "priced" was committed 2 times`},
		{"a phase without a result", func(t testing.TB) { idemtest.Committed[int](t, twice, "called") }, `phase "called" was committed with the answer`},
		{"a result of another type", func(t testing.TB) { idemtest.Committed[struct{ Price int }](t, log, "priced") }, "the result of phase priced is no struct"},
		{"no answer", func(t testing.TB) { idemtest.Finished(t, empty) }, "0 operations have finished, want 1"},
		{"two answers", func(t testing.TB) { idemtest.Finished(t, twice) }, "2 operations have finished, want 1"},
		{"no job", func(t testing.TB) { idemtest.Staged[priced](t, log, "refund") }, `0 jobs of kind "refund" are staged, want 1; staged: ["index" "index" "send_mail"]`},
		{"two jobs", func(t testing.TB) { idemtest.Staged[priced](t, log, "index") }, `2 jobs of kind "index"`},
		{"a job of another type", func(t testing.TB) { idemtest.Staged[struct{ Price int }](t, log, "send_mail") }, "the job send_mail is no struct"},
	} {
		if got := failtest.Run(tt.test); len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A commit that the store has refused, and one that never reached it, are not there.
func TestWatchNotesOnlyWhatWasApplied(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		log := idemtest.Faulty(new(idem.MemoryStore), idemtest.CrashAt(2, applied))
		_, _ = idem.New(log).Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, func(context.Context) (idem.Response, error) {
			return idem.Response{Status: 201}, nil
		})
		done := 0
		for _, c := range log.Commits() {
			if c.Next.State == store.Done {
				done++
			}
		}
		if want := map[bool]int{false: 0, true: 1}[applied]; done != want || len(log.Commits()) != 1+want {
			t.Errorf("applied %t: %d answers in %d commits", applied, done, len(log.Commits()))
		}
		_, _ = idem.New(log).Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, nil)
		if n := len(log.Commits()); n > 2 {
			t.Errorf("a refused claim was noted: %d commits", n)
		}
	}
}

func TestReplays(t *testing.T) {
	t.Parallel()
	request := idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}
	answers := func(status int) func(context.Context) (idem.Response, error) {
		n := 0
		return func(context.Context) (idem.Response, error) {
			n++
			return idem.Response{Status: status, Body: []byte{byte('0' + n)}, Header: http.Header{"X-Run": {strconv.Itoa(n)}, "Location": {"/1"}}}, nil
		}
	}
	if res := idemtest.Replays(t, idem.New(new(idem.MemoryStore)), answers(201), request); res.Status != 201 || string(res.Body) != "1" {
		t.Errorf("got %+v", res)
	}
	used := idem.New(new(idem.MemoryStore))
	if _, err := used.Do(t.Context(), request, answers(201)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		engine  *idem.Engine
		handler func(context.Context) (idem.Response, error)
		request idem.Request
		want    string
	}{
		{"an answer that isn't kept", idem.New(new(idem.MemoryStore)), answers(500), request, "the same request again ran the handler: its answer, 500, is not stored"},
		{"a used key", used, answers(201), request, "the first request was answered from a record"},
		{"no key", idem.New(new(idem.MemoryStore)), answers(201), idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}}, "the first request: "},
		{"an optional key", idem.New(new(idem.MemoryStore), func(o *idem.Options) { o.Key = idem.KeyOptional }), answers(201), idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}}, "the same request again ran the handler"},
	} {
		got := failtest.Run(func(t testing.TB) { idemtest.Replays(t, tt.engine, tt.handler, tt.request) })
		if len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
