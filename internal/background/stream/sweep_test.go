package stream_test

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/tabletest"
	"github.com/samekey/samekey/internal/trace"
	"github.com/samekey/samekey/seal"
)

// sweep is a sweep of the table that doesn't wait.
func (tab *table) sweep(optFns ...func(*stream.SweepOptions)) *stream.Sweep {
	fast := func(o *stream.SweepOptions) { o.PagesPerSecond = 1e6 }
	return stream.NewSweep(tab.Client, tab.Store, append([]func(*stream.SweepOptions){fast}, optFns...)...)
}

// in judges by a clock that is ahead.
func in(d time.Duration) func(*stream.SweepOptions) {
	return func(o *stream.SweepOptions) { o.Now = func() time.Time { return time.Now().Add(d) } }
}

// look is what the sweep lists. It fails the test if that changes anything.
func look(t testing.TB, tab *table, optFns ...func(*stream.SweepOptions)) *stream.Report {
	t.Helper()
	tab.Transport.Reset()
	rep, err := tab.sweep(optFns...).List(t.Context())
	if err != nil || !rep.Complete {
		t.Fatalf("got %+v, %v", rep, err)
	}
	if scans := tab.Transport.Calls()["Scan"]; tab.Transport.Total() != scans || scans == 0 {
		t.Errorf("a look took %v", tab.Transport.Calls())
	}
	return rep
}

// counts are a report's, by reason.
func counts(rep *stream.Report) map[state.Reason]int {
	m := make(map[state.Reason]int)
	for why, tally := range rep.ByReason {
		m[why] = tally.Count
	}
	return m
}

// crowd fills a table with one operation in every state that a sweep may meet.
func crowd(t *testing.T, tab *table) {
	t.Helper()
	run(t, idem.New(tab.Store, callertest.Anybody), tabletest.Created("finished"))
	run(t, idem.New(tab.Store, callertest.Anybody), one("waiting")) // undelivered
	tab.finished(t, nil)                                            // unsettled
	tab.finished(t, func(r *store.Record) {
		r.Jobs["0.0"] = idem.Job{Kind: "poison", Args: []byte("1"), Tries: 5, Failed: "bad"}
	})
	begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), nothing) // open, with its request
	begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), phase, func(o *idem.Options) { o.MaxTries = 1 })
	tab.Abandon(t, tabletest.Post(tabletest.NewKey(), "{}")) // expiring
	tab.Put(t, item(t, open(map[string]any{"pk": text("v1##stuck"), "st": text("stuck"), "last_err": text("gave up"), "tries": digits(3)})))
	tab.Put(t, item(t, open(map[string]any{"pk": text("v1##norequest"), "req": nil, "mark": text("?")})))
	tab.Put(t, item(t, open(map[string]any{"pk": text("v1##future"), "v": digits(2)})))
	tab.Put(t, map[string]types.AttributeValue{"pk": tabletest.Str("order#1"), "keep": tabletest.Str("mine")}) // somebody else's
	down := errors.New("down")
	_, err := idem.New(tab.Store, callertest.Anybody).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(context.Context) (idem.Response, error) { return idem.Response{}, down })
	if !errors.Is(err, down) {
		t.Fatal(err)
	}
}

//nolint:tparallel // one table
func TestListNamesEverythingLeftUndone(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	crowd(t, tab)

	t.Run("while it is young: only what waits for people anyway", func(t *testing.T) {
		want := map[state.Reason]int{state.ReasonStuck: 1, state.ReasonParked: 1, state.ReasonUnreadable: 1}
		rep := look(t, tab, in(-time.Minute))
		if diff := cmp.Diff(want, counts(rep)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if left := time.Until(rep.YoungUntil); rep.Young != 4 || left < 14*time.Minute || left > time.Hour {
			t.Errorf("%d are young, for %v", rep.Young, left)
		}
	})
	t.Run("later: all of it, and nothing else", func(t *testing.T) {
		var log bytes.Buffer
		var skipped []stream.Skipped
		rep := look(t, tab, in(time.Hour), func(o *stream.SweepOptions) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			o.Hooks.Skipped = func(_ context.Context, s stream.Skipped) { skipped = append(skipped, s) }
		})
		want := map[state.Reason]int{
			state.ReasonStuck: 1, state.ReasonParked: 1, state.ReasonUnreadable: 1, state.ReasonOpen: 2, state.ReasonNoRequest: 1,
			state.ReasonExpiring: 1, state.ReasonUndelivered: 2, state.ReasonKept: 1,
		}
		if diff := cmp.Diff(want, counts(rep)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if rep.Scanned != 12 || len(rep.Entries) != 10 || rep.Delivered+rep.LetGo+rep.Queued+rep.MadeStuck+rep.Young != 0 {
			t.Errorf("got %+v", rep)
		}
		if tally := rep.ByReason[state.ReasonOpen]; tally.Oldest < 3590 || tally.Oldest > 3700 {
			t.Errorf("the oldest open one is %d s old, want an hour", tally.Oldest)
		}
		if len(skipped) != 1 || skipped[0].Reason != stream.SkipUnreadable || skipped[0].Record == "" {
			t.Errorf("told %+v", skipped)
		}
		if n := strings.Count(log.String(), "msg=unfinished"); n != 10 {
			t.Errorf("%d lines for 10 entries:\n%s", n, log.String())
		}
		for _, e := range rep.Entries {
			if e.PK == "" || e.Record == "" || e.Reason != state.ReasonUnreadable && (e.ID == "" || e.Run.IsZero() || e.Created.IsZero()) {
				t.Errorf("entry %+v", e)
			}
			switch {
			case e.Reason == state.ReasonStuck && (e.LastErr != "gave up" || e.Tries != 3 || e.Route != "POST /orders"):
				t.Errorf("entry %+v", e)
			case e.Reason == state.ReasonParked && (e.Job != "0.0" || e.Kind != "poison" || e.LastErr != "bad" || e.Tries != 5):
				t.Errorf("entry %+v", e)
			case e.Reason == state.ReasonUnreadable && (e.PK != "v1##future" || !strings.Contains(e.LastErr, "layout version 2")):
				t.Errorf("entry %+v", e)
			}
		}
		if !slicesHavePhase(rep.Entries, "ride_created") {
			t.Error("no entry has its recovery point")
		}
		b, err := json.Marshal(rep)
		if err != nil || bytes.Contains(b, []byte("0001-01-01")) {
			t.Errorf("as JSON %s, %v", b, err)
		}
	})
	t.Run("a short list still counts all", func(t *testing.T) {
		rep := look(t, tab, in(time.Hour), func(o *stream.SweepOptions) { o.MaxEntries = 3 })
		n := 0
		for _, c := range counts(rep) {
			n += c
		}
		if len(rep.Entries) != 3 || n != 10 {
			t.Errorf("%d entries, %d counted", len(rep.Entries), n)
		}
	})
	t.Run("in pages and segments of any size", func(t *testing.T) {
		rep := look(t, tab, in(time.Hour), func(o *stream.SweepOptions) { o.PageSize, o.Segments = 1, 3 })
		if rep.Scanned != 12 || len(rep.Entries) != 10 || rep.Pages < 12 {
			t.Errorf("scanned %d, %d entries, %d pages", rep.Scanned, len(rep.Entries), rep.Pages)
		}
	})
}

func slicesHavePhase(entries []stream.Entry, phase string) bool {
	for _, e := range entries {
		if e.Phase == phase {
			return true
		}
	}
	return false
}

// The stream was off: what the sweep finds is delivered, let go, queued and given
// up, as the stream's readers would have.
func TestSweepActsInTheStreamsStead(t *testing.T) {
	t.Parallel()
	sweeps(t, func(t *testing.T, newSweep makeSweep) {
		tab := newLocal(t)
		crowd(t, tab)
		out, queue := &outbox{}, &tickets{}
		engine := idem.New(tab.Store, callertest.Anybody, resumable, tabletest.Ahead(48*time.Hour))
		var givenUp []stream.Entry
		var mu sync.Mutex // segments are looked at side by side
		var queued int
		sweep := newSweep(tab, out, queue, in(48*time.Hour), func(o *stream.SweepOptions) {
			o.MarkStuck = engine.MarkStuck
			o.Hooks.MadeStuck = func(_ context.Context, e stream.Entry) { givenUp = append(givenUp, e) }
			o.Hooks.Queued = func(context.Context, jobs.Ticket) {
				mu.Lock()
				defer mu.Unlock()
				queued++
			}
		})
		rep, err := sweep.Run(t.Context())
		if err != nil || rep.Delivered != 2 || rep.LetGo != 1 || rep.Queued != 2 || rep.MadeStuck != 1 {
			t.Fatalf("got %+v, %v", rep, err)
		}
		if len(out.byID) != 2 || queued != 2 || len(givenUp) != 1 || givenUp[0].PK != "v1##norequest" {
			t.Errorf("delivered %v, queued %d, gave up %+v", out.byID, queued, givenUp)
		}
		for _, found := range queue.all() {
			rec, err := tab.Store.Load(t.Context(), found.PK)
			if err != nil || rec.ID != found.Operation {
				t.Fatalf("%+v: %+v, %v", found, rec, err)
			}
			ticket := state.TicketFor(rec)
			if _, err := engine.Resume(t.Context(), ticket, func(ctx context.Context, _ *idem.Request) (idem.Response, error) {
				return idem.Response{Status: 201}, phase(ctx)
			}); err != nil {
				t.Errorf("a ticket is no good: %v", err)
			}
		}
		if r, err := tab.Store.Load(t.Context(), "v1##norequest"); err != nil || r.State != store.Stuck || r.Keep != store.KeepOpen {
			t.Errorf("given up: %+v, %v", r, err)
		}

		t.Run("again: only people's work is left", func(t *testing.T) {
			rep, err := sweep.Run(t.Context())
			if err != nil || rep.Delivered+rep.Queued+rep.MadeStuck != 0 {
				t.Errorf("got %+v, %v", rep, err)
			}
			want := map[state.Reason]int{state.ReasonStuck: 1, state.ReasonUnknown: 1, state.ReasonParked: 1, state.ReasonUnreadable: 1, state.ReasonExpiring: 1}
			if diff := cmp.Diff(want, counts(rep)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	})
}

// What fails is an error, what is out of time isn't, and neither stops the rest.
func TestSweepThatFails(t *testing.T) {
	t.Parallel()
	sweeps(t, func(t *testing.T, newSweep makeSweep) {
		tab := newTable(t)
		crowd(t, tab)
		t.Run("a segment that can't be read", func(t *testing.T) {
			tab.Transport.Reset()
			tab.Transport.Fault = tabletest.On("Scan", 1, dbfault.AnswerError(400, "AccessDeniedException", "injected"))
			defer func() { tab.Transport.Fault = nil }()
			rep, err := tab.sweep(in(time.Hour), func(o *stream.SweepOptions) { o.Segments = 4 }).List(t.Context())
			if err == nil || rep.Complete || rep.Pages != 3 {
				t.Errorf("got %+v, %v; want the other three segments", rep, err)
			}
		})
		t.Run("a queue that is down: the rest is done", func(t *testing.T) {
			out := &outbox{}
			rep, err := newSweep(tab, out, &tickets{fail: func(jobs.Ticket) error { return errors.New("injected") }}, in(time.Hour)).Run(t.Context())
			if err == nil || !rep.Complete || rep.Delivered != 2 || rep.LetGo != 1 || rep.Queued != 0 {
				t.Errorf("got %+v, %v", rep, err)
			}
		})
		t.Run("a sink that is down: listed again, and no job is counted", func(t *testing.T) {
			tab.finished(t, nil, "0.0")
			rep, err := newSweep(tab, &outbox{fail: func(jobs.Delivery) error { return jobs.ErrSinkDown }}, &tickets{}, in(time.Hour)).Run(t.Context())
			if err != nil || rep.Delivered != 0 || rep.ByReason[state.ReasonUndelivered].Count != 1 {
				t.Errorf("got %+v, %v", rep, err)
			}
		})
		t.Run("no time at all", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // all of it is reserve
			defer cancel()
			rep, err := tab.sweep().List(ctx)
			if err != nil || rep.Complete || rep.Pages != 0 {
				t.Errorf("got %+v, %v", rep, err)
			}
		})
		t.Run("time that ends", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second+50*time.Millisecond) // of which a second is reserve
			defer cancel()
			rep, err := tab.sweep(in(time.Hour), func(o *stream.SweepOptions) { o.PagesPerSecond, o.PageSize = 1, 1 }).List(ctx)
			if err != nil || rep.Complete || rep.Pages > 1 {
				t.Errorf("got %+v, %v", rep, err)
			}
		})
	})
}

// The sweep reads without asking for the newest: claims don't notice it.
func TestSweepReadsEventually(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	scans := &scans{ScanAPI: tab.Client}
	if _, err := stream.NewSweep(scans, tab.Store, func(o *stream.SweepOptions) { o.PagesPerSecond = 1e6 }).List(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, in := range scans.all {
		if in.ConsistentRead != nil && *in.ConsistentRead || in.Limit == nil || *in.Limit > 1000 || in.FilterExpression == nil {
			t.Errorf("scanned with %+v", in)
		}
	}
	if len(scans.all) != 8 {
		t.Errorf("%d scans, want one for each segment", len(scans.all))
	}
}

type scans struct {
	stream.ScanAPI
	mu  sync.Mutex
	all []*dynamodb.ScanInput
}

func (s *scans) Scan(ctx context.Context, in *dynamodb.ScanInput, optFns ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	s.mu.Lock()
	s.all = append(s.all, in)
	s.mu.Unlock()
	return s.ScanAPI.Scan(ctx, in, optFns...)
}

func TestSweepInvoke(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.finished(t, nil, "0.0")
	out, err := tab.sweep(in(time.Hour)).Invoke(t.Context(), []byte(`{"source":"aws.scheduler"}`))
	var rep stream.Report
	if err != nil || json.Unmarshal(out, &rep) != nil || !rep.Complete || rep.ByReason[state.ReasonUndelivered].Count != 1 {
		t.Errorf("got %s, %v", out, err)
	}
}

// What only its client can bring to an end is left to its client for as long as
// that may come back, and then given up, so that it doesn't lie there unseen.
func TestSweepGivesUpAfterTheRetentionOnly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		retention, after time.Duration // of the function; the sweep has no such setting
		want             store.State
	}{
		"before":                  {0, defaults.Retention - time.Hour, store.Open},
		"after":                   {0, defaults.Retention + time.Hour, store.Stuck},
		"before that of 72 hours": {72 * time.Hour, 71 * time.Hour, store.Open},
		"after that of 72 hours":  {72 * time.Hour, 73 * time.Hour, store.Stuck},
		"after that of 2 hours":   {2 * time.Hour, 3 * time.Hour, store.Stuck},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), phase, func(o *idem.Options) { o.Retention = tt.retention })
			tab.edit(t, tab.Only(t).PK, "REMOVE req", nil) // as without Resumable
			engine := idem.New(tab.Store, callertest.Anybody, tabletest.Ahead(tt.after))
			sweep := tab.sweep(in(tt.after), func(o *stream.SweepOptions) { o.MarkStuck = engine.MarkStuck })
			rep, err := sweep.Run(t.Context())
			if err != nil || rep.ByReason[state.ReasonNoRequest].Count != 1 {
				t.Errorf("got %+v, %v; want it listed", rep, err)
			}
			if r := tab.Only(t); r.State != tt.want || r.Retention != stdcmp.Or(tt.retention, defaults.Retention) {
				t.Errorf("state %q, retention %v; want %q, and that of the function", r.State, r.Retention, tt.want)
			}
		})
	}
}

// An operator's decision starts the sweep's times anew: the operation is not
// given up again a minute later, for having lain there before, but a retention
// later.
func TestSweepLeavesASettlementToItsClient(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	onClock := func(o *idem.Options) { o.Now = clock.Now }
	begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
		return err
	}, onClock)
	pk := tab.Only(t).PK
	tab.edit(t, pk, "REMOVE req", nil) // as without Resumable
	engine := idem.New(tab.Store, callertest.Anybody, onClock)
	sweep := tab.sweep(func(o *stream.SweepOptions) { o.Now, o.MarkStuck = clock.Now, engine.MarkStuck })
	for _, step := range []struct {
		later  time.Duration
		settle bool
		state  store.State
		listed state.Reason
	}{
		{26 * time.Hour, false, store.Stuck, state.ReasonNoRequest},
		{26 * time.Hour, false, store.Stuck, state.ReasonStuck}, // nobody looks for a day
		{time.Minute, true, store.Open, ""},
		{10 * time.Minute, false, store.Open, state.ReasonNoRequest},
		{23 * time.Hour, false, store.Open, state.ReasonNoRequest},
		{2 * time.Hour, false, store.Stuck, state.ReasonNoRequest},
	} {
		if step.settle {
			if err := engine.Settle(t.Context(), pk, idem.Settlement{By: "jane"}); err != nil {
				t.Fatal(err)
			}
		}
		clock.Advance(step.later)
		rep, err := sweep.Run(t.Context())
		listed := step.listed == "" && len(rep.Entries) == 0 || rep.ByReason[step.listed].Count == 1
		if r := tab.Only(t); err != nil || r.State != step.state || !listed {
			t.Fatalf("%+v: state %q, got %+v, %v", step, r.State, rep, err)
		}
	}
	if r := tab.Only(t); len(r.Settled) != 1 || r.Settled[0].By != "jane" {
		t.Errorf("settled: %+v", r.Settled)
	}
}

// stuckWithRequest begins an operation of a request with this body, with committed work,
// and gives it up.
func stuckWithRequest(t *testing.T, tab *table, key, body string, optFns ...func(*idem.Options)) {
	t.Helper()
	begin(t, tab, tabletest.Post(key, body), phase, optFns...)
	ahead := idem.New(tab.Store, callertest.Anybody, tabletest.Ahead(time.Hour))
	if err := ahead.MarkStuck(t.Context(), state.TicketFor(tab.Only(t)), "for this test"); err != nil {
		t.Fatal(err)
	}
}

// Without a decision of people the contents of a stuck operation's request go after 30
// days, wherever they are stored and however; the operation stays, with all that people
// decide by, and its client's retry can still end it.
func TestSweepEmptiesWhatNobodyDecides(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		size      int
		sealed    bool
		retention time.Duration
		after     time.Duration
		giveUp    bool
		want      bool // it is emptied
	}{
		"before":                            {size: 10, after: 30*day - time.Hour, giveUp: true},
		"after":                             {size: 10, after: 30*day + 2*time.Hour, giveUp: true, want: true},
		"beside the record":                 {size: 20_000, after: 30*day + 2*time.Hour, giveUp: true, want: true},
		"sealed, and this sweep has no key": {size: 20_000, sealed: true, after: 30*day + 2*time.Hour, giveUp: true, want: true},
		"a key that is remembered longer":   {size: 10, retention: 60 * day, after: 30*day + 2*time.Hour, giveUp: true},
		"a sweep that only lists":           {size: 10, after: 30*day + 2*time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, func(o *dynamo.Options) {
				if tt.sealed {
					o.Seal = seal.New(static(t))
				}
			})
			key := tabletest.NewKey()
			var random strings.Builder // nothing that compresses away
			for random.Len() < tt.size {
				random.WriteString(tabletest.NewKey())
			}
			body := `"` + random.String() + `"`
			stuckWithRequest(t, tab, key, body, func(o *idem.Options) { o.Retention = tt.retention })
			before := tab.Only(t)
			if beside := before.Input.Overflow != nil; beside != (tt.size > 4096) {
				t.Fatalf("its request is stored beside it: %t", beside)
			}
			plain, err := dynamo.New(tab.Client, tab.Name) // the worker's, without keys
			if err != nil {
				t.Fatal(err)
			}
			sweep := stream.NewSweep(tab.Client, plain, in(tt.after), func(o *stream.SweepOptions) {
				o.PagesPerSecond = 1e6
				if tt.giveUp {
					o.MarkStuck = idem.New(plain, callertest.Anybody).MarkStuck
				}
			})
			rep, err := sweep.Run(t.Context())
			if err != nil || rep.ByReason[state.ReasonStuck].Count != 1 || (rep.Emptied == 1) != tt.want {
				t.Errorf("the report is %+v, %v", rep, err)
			}
			after := tab.Only(t)
			if (after.Input == nil) != tt.want {
				t.Errorf("its request is %v", after.Input)
			}
			if after.State != store.Stuck || after.ID != before.ID || after.Fingerprint != before.Fingerprint || after.LastErr != before.LastErr ||
				!slices.EqualFunc(after.Phases, before.Phases, func(a, b store.Phase) bool { return a.Name == b.Name && string(a.Result) == string(b.Result) }) {
				t.Errorf("got %+v, want all but the request of %+v", after, before)
			}
			if !tt.want {
				return
			}
			for _, it := range tab.Items(t) {
				if pk := it["pk"].(*types.AttributeValueMemberS).Value; !strings.HasPrefix(pk, before.PK+"#") || it["b"] == nil {
					continue
				}
				// A sweep without keys doesn't know where sealed contents are. TTL has removed them by now.
				exp, err := strconv.ParseInt(it["exp_s"].(*types.AttributeValueMemberN).Value, 10, 64)
				if !tt.sealed || err != nil || exp > time.Now().Add(tt.after).Unix() {
					t.Errorf("a companion's contents are left until %d, %v", exp, err)
				}
			}
			engine := tab.Engine(resumable)
			if err := engine.Settle(t.Context(), after.PK, idem.Settlement{By: "jane"}); err != nil {
				t.Fatal(err)
			}
			res, err := engine.Do(t.Context(), tabletest.Post(key, body), func(ctx context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, phase(ctx)
			})
			if err != nil || res.Status != 201 {
				t.Errorf("its client's retry got %+v, %v", res, err)
			}
		})
	}
}

// What TTL will delete costs a pass nothing but its reading: the pass writes its own place,
// and nothing else, before the items' time and long after it.
func TestPassLeavesToTTLWhatTTLDeletes(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	run(t, tab.Engine(callertest.Anybody), tabletest.Created("finished"))
	run(t, tab.Engine(callertest.Anybody), tabletest.Created(noise(50_000))) // in parts beside the record
	stored := tabletest.Post(tabletest.NewKey(), noise(50_000))              // with a request beside it
	if _, err := tab.Engine(callertest.Anybody, resumable).Do(t.Context(), stored, tabletest.Created("resumable")); err != nil {
		t.Fatal(err)
	}
	tab.Abandon(t, tabletest.Post(tabletest.NewKey(), "{}")) // nothing is committed
	down := errors.New("down")
	_, err := tab.Engine(callertest.Anybody).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(context.Context) (store.Response, error) { return store.Response{}, down })
	if !errors.Is(err, down) { // given back
		t.Fatal(err)
	}
	before := tab.Items(t)
	for _, it := range before {
		if it["exp_s"] == nil {
			t.Fatalf("TTL doesn't delete %v", it)
		}
	}
	for _, after := range []time.Duration{0, time.Hour, 25 * time.Hour, 60 * 24 * time.Hour} {
		queue := &tickets{}
		tab.Transport.Reset()
		rep, err := tab.sweep(in(after), func(o *stream.SweepOptions) {
			o.Drain, o.Queue, o.MarkStuck = stream.NewDrain(tab.Store, &outbox{}), queue, tab.Engine(callertest.Anybody, tabletest.Ahead(after)).MarkStuck
		}).Run(t.Context())
		if err != nil || !rep.Complete || rep.Scanned < len(before) {
			t.Fatalf("after %v: %+v, %v", after, rep, err)
		}
		want := calls{"Scan": rep.Pages, "GetItem": 1, "UpdateItem": 1} // of its place
		if diff := cmp.Diff(want, tab.Transport.Calls()); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", after, diff)
		}
		left := tab.Items(t)
		records := make([]map[string]types.AttributeValue, 0, len(left))
		for _, it := range left {
			if it["pk"].(*types.AttributeValueMemberS).Value != "samekey#sweep#" {
				records = append(records, it)
			}
		}
		if diff := cmp.Diff(before, records, anyValue); diff != "" || len(queue.all()) > 0 {
			t.Errorf("after %v the items (-before +after):\n%s; tickets %v", after, diff, queue.all())
		}
	}
}

func failsLate(t *testing.T, tab *table, clock *idemtest.Clock, optFns ...func(*idem.Options)) {
	t.Helper()
	down := errors.New("down")
	engine := idem.New(tab.Store, append([]func(*idem.Options){callertest.Anybody}, append(optFns, func(o *idem.Options) { o.Now = clock.Now })...)...)
	_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(context.Context) (idem.Response, error) {
		clock.Advance(40 * time.Minute)
		return idem.Response{}, down
	})
	if !errors.Is(err, down) {
		t.Fatal(err)
	}
}

// What such a handler gives back is its client's for a whole grace: the sweep
// neither lists it at once nor hands it to the completer.
func TestSweepLeavesWhatALongHandlerGaveBackToItsClient(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		later          time.Duration
		listed, queued int
	}{
		"at once":                       {0, 0, 0},
		"before the grace":              {state.DefaultGrace - time.Minute, 0, 0},
		"after the grace":               {state.DefaultGrace + time.Minute, 1, 0},
		"the completer has not seen it": {state.DefaultGrace + 16*time.Minute, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab, clock, queue := newTable(t), idemtest.NewClock(), &tickets{}
			failsLate(t, tab, clock, resumable)
			clock.Advance(tt.later)
			rep, err := tab.sweep(func(o *stream.SweepOptions) { o.Now, o.Queue = clock.Now, queue }).Run(t.Context())
			if err != nil || rep.ByReason[state.ReasonOpen].Count != tt.listed || len(rep.Entries) != tt.listed || rep.Queued != tt.queued {
				t.Errorf("got %+v, %v", rep, err)
			}
		})
	}
}

// The jobs of such a handler have waited since its finish, not since its begin.
func TestSweepLeavesALongHandlersJobsToTheDrain(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	engine := idem.New(tab.Store, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
	if _, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
		clock.Advance(40 * time.Minute)
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", 1))
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{0, 1} {
		if rep := look(t, tab, func(o *stream.SweepOptions) { o.Now = clock.Now }); rep.ByReason[state.ReasonUndelivered].Count != want {
			t.Errorf("listed %+v, want %d", rep, want)
		}
		clock.Advance(16 * time.Minute)
	}
}

// After a deploy that renames a recorded phase the operation is listed at once,
// with its cause, however often its client tries again; the completer and its
// client go on as ever, and once it is done nothing is listed.
func TestBlockedIsListedAtOnce(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine, req := idem.New(tab.Store, callertest.Anybody, resumable), tabletest.Post(tabletest.NewKey(), "{}")
	version := func(phase string, then error) func(context.Context) (idem.Response, error) {
		return func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, phase, func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return idem.Response{Status: 201}, errors.Join(err, then)
		}
	}
	if _, err := engine.Do(t.Context(), req, version("ride_created", errors.New("down"))); err == nil {
		t.Fatal("answered")
	}
	if rep := look(t, tab); len(rep.Entries) != 0 {
		t.Fatalf("listed %+v before it is refused", rep.Entries)
	}
	for range 3 {
		if _, err := engine.Do(t.Context(), req, version("booked", nil)); !errors.Is(err, idem.ErrPhaseOrder) {
			t.Fatal(err)
		}
		rep := look(t, tab)
		if len(rep.Entries) != 1 || rep.Entries[0].Reason != state.ReasonBlocked || rep.ByReason[state.ReasonBlocked].Count != 1 ||
			!strings.Contains(rep.Entries[0].LastErr, `"booked" is next, but "ride_created" is recorded there`) {
			t.Fatalf("listed %+v", rep.Entries)
		}
	}

	queue := &tickets{} // the sweep stands in for the stream, as with anything that is open
	rep, err := tab.sweep(in(time.Hour), func(o *stream.SweepOptions) { o.Queue = queue }).Run(t.Context())
	if err != nil || rep.Queued != 1 || len(rep.Entries) != 1 || rep.Entries[0].Reason != state.ReasonBlocked {
		t.Errorf("an hour later %+v, %v", rep, err)
	}
	if res, err := engine.Do(t.Context(), req, version("ride_created", nil)); err != nil || res.Status != 201 {
		t.Fatalf("after the rollback %+v, %v", res, err)
	}
	if rep := look(t, tab, in(time.Hour)); len(rep.Entries) != 0 {
		t.Errorf("done, and listed %+v", rep.Entries)
	}
}

// Each run tells what it has found: how old the oldest open operation is, also one in
// flight, but not one whose key was freed; and how much of the table the pass has seen.
func TestSweptTellsEachRun(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	at := func(o *idem.Options) { o.Now = clock.Now }
	var told []*stream.Report
	var failed []error
	run := func(optFns ...func(*stream.SweepOptions)) *stream.Report {
		t.Helper()
		sweep := tab.sweep(append(optFns, func(o *stream.SweepOptions) {
			o.Now, o.Segments = clock.Now, 4
			o.Hooks.Swept = func(_ context.Context, r *stream.Report, err error) {
				told, failed = append(told, r), append(failed, err)
			}
		})...)
		before := len(told)
		rep, err := sweep.Run(t.Context())
		if len(told) != before+1 || told[before] != rep || !errors.Is(failed[before], err) {
			t.Fatalf("told %+v %v, returned %+v %v", told, failed, rep, err)
		}
		return rep
	}

	down := errors.New("down")
	if _, err := idem.New(tab.Store, callertest.Anybody, at).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(context.Context) (idem.Response, error) {
		return idem.Response{}, down
	}); !errors.Is(err, down) {
		t.Fatal(err)
	}
	if rep := run(); !rep.OldestOpen.IsZero() || rep.Coverage != 1 || !rep.Complete {
		t.Errorf("a freed key: %+v", rep)
	}
	clock.Advance(time.Hour)
	claimed := clock.Now()
	if _, err := idem.New(tab.Store, callertest.Anybody, at).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(context.Context) (idem.Response, error) {
		clock.Advance(time.Second)
		if rep := run(); !rep.OldestOpen.Equal(claimed.Truncate(time.Millisecond)) {
			t.Errorf("in flight: %v, want %v", rep.OldestOpen, claimed)
		}
		return idem.Response{Status: 201}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if rep := run(); !rep.OldestOpen.IsZero() {
		t.Errorf("finished: %+v", rep)
	}

	denied := stream.NewSweep(failingScan{}, tab.Store, func(o *stream.SweepOptions) {
		o.Name = "denied"
		o.Hooks.Swept = func(_ context.Context, r *stream.Report, err error) {
			told, failed = append(told, r), append(failed, err)
		}
	})
	if _, err := denied.Run(t.Context()); err == nil || failed[len(failed)-1] == nil || told[len(told)-1].Coverage != 0 {
		t.Errorf("a sweep without a scan: %v, told %v of %+v", err, failed[len(failed)-1], told[len(told)-1])
	}
	if n := len(told); n != 4 {
		t.Fatalf("told of %d runs, want 4", n)
	}
	if _, err := denied.List(t.Context()); err == nil || len(told) != 4 {
		t.Errorf("a list told of a run: %v", err)
	}
}

var errNoScan = errors.New("no right to scan")

// failingScan is a table that can't be scanned.
type failingScan struct{}

func (failingScan) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return nil, errNoScan
}

func TestJoinCallsEachHookOfAll(t *testing.T) {
	t.Parallel()
	counting := func(n *int) stream.Hooks {
		var h stream.Hooks
		v := reflect.ValueOf(&h).Elem()
		for _, field := range v.Fields() {
			field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value {
				*n++
				return nil
			}))
		}
		return h
	}
	var first, second int
	joined := reflect.ValueOf(stream.Join(counting(&first), stream.Hooks{}, counting(&second)))
	none := reflect.ValueOf(stream.Join(stream.Hooks{}, stream.Hooks{}))
	for i := range joined.NumField() {
		hook, name := joined.Field(i), joined.Type().Field(i).Name
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for n := 1; n < hook.Type().NumIn(); n++ {
			args = append(args, reflect.Zero(hook.Type().In(n)))
		}
		if hook.Call(args); first != i+1 || second != i+1 {
			t.Fatalf("after %s the hooks were called %d and %d times, want %d", name, first, second, i+1)
		}
		if !none.Field(i).IsNil() {
			t.Errorf("%s of no hooks is not nil", name)
		}
	}
}

// The sweep's tickets and list say so, too.
func TestSweepAddressesWhatItFinds(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	now := time.Now().Truncate(time.Millisecond)
	r := &store.Record{
		PK: "v1##swept", State: store.Open, Owner: "o", Ver: 1, ID: "i", Fingerprint: "f", Keep: store.KeepOpen, Input: &store.Input{Method: "POST", Path: "/"},
		Lease: now.Add(-time.Hour), Created: now.Add(-2 * time.Hour), Run: now.Add(-2 * time.Hour),
		Handler: store.HandlerID{Function: "rides", Name: "POST /rides"}, Tenant: "jane",
	}
	if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: r, Now: now}); err != nil || held != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	queue := &tickets{}
	report, err := tab.sweep(func(o *stream.SweepOptions) { o.Queue = queue }).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Entries) != 1 || report.Entries[0].Function != "rides" || report.Entries[0].Handler != "POST /rides" {
		t.Errorf("listed %+v", report.Entries)
	}
	want := state.TicketFor(r).From(time.Time{})
	if got := queue.all(); len(got) != 1 {
		t.Errorf("tickets %+v", got)
	} else if got[0].Due = (time.Time{}); !cmp.Equal(want, got[0]) {
		t.Errorf("ticket %+v, want %+v", got[0], want)
	}
}

// Browse judges as List does, shows every record, and nothing personal.
func TestBrowse(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	crowd(t, tab)
	req := tabletest.Post(tabletest.NewKey(), `{"card":"secret-body"}`)
	if _, err := idem.New(tab.Store, callertest.Anybody).Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "secret", func(context.Context, *idem.Tx) (string, error) { return "secret-result", nil })
		return idem.Response{Status: 201, Body: []byte("secret-answer")}, err
	}); err != nil {
		t.Fatal(err)
	}
	later := in(2 * time.Hour)
	want := look(t, tab, later).Entries

	var got []stream.Entry
	var last stream.Browsed
	records := 0
	tab.Transport.Reset()
	err := tab.sweep(later, func(o *stream.SweepOptions) { o.PageSize = 2 }).Browse(t.Context(), func(page []stream.Glimpse, b stream.Browsed) {
		last = b
		for _, g := range page {
			got = append(got, g.Entries...)
			records++
			if (g.Record == nil) == (g.Err == nil) || g.PK == "" || g.Name == "" {
				t.Errorf("%+v has both or neither of record and error, or no name", g)
			}
			if text, err := json.Marshal(g); err != nil || strings.Contains(string(text), "secret-") {
				t.Errorf("shown: %s, %v", text, err)
			}
			if g.Record != nil {
				full, err := tab.Store.Load(t.Context(), g.PK)
				if err != nil {
					t.Fatal(err)
				}
				whole := tab.sweep(later).Glimpse(full).Record
				whole.Secret, whole.Calls, whole.Sent, whole.Settled, whole.Trace = "", nil, nil, nil, trace.Context{}
				if diff := cmp.Diff(whole, g.Record); diff != "" {
					t.Errorf("browsed differs from loaded (-loaded +browsed):\n%s", diff)
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	order := func(a, b stream.Entry) int {
		return stdcmp.Or(stdcmp.Compare(a.Reason, b.Reason), stdcmp.Compare(a.PK, b.PK), stdcmp.Compare(a.Job, b.Job))
	}
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 7 {
		t.Errorf("%d listed; browsed (-listed +browsed):\n%s", len(want), diff)
	}
	if records != last.Scanned-1 || last.Pages < 5 { // one item is somebody else's
		t.Errorf("%d records, %+v", records, last)
	}
}

// A read that fails ends all goroutines, and its error is returned.
func TestBrowseFails(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	err := stream.NewSweep(failingScan{}, tab.Store).Browse(t.Context(), func([]stream.Glimpse, stream.Browsed) { t.Error("a page") })
	if !errors.Is(err, errNoScan) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tab.sweep().Browse(ctx, func([]stream.Glimpse, stream.Browsed) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The page says of each reason of the list what the sweep does about it.
func TestReasonsAreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operate/background.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range state.Reasons {
		if !strings.Contains(string(page), "\n| `"+string(r.Reason)+"` | ") {
			t.Errorf("docs/operate/background.md has no row for %s, want one", r.Reason)
		}
	}
}

// The hooks of Log write a line each; without a logger, to the default one.
func TestLogTellsWhatGoesWell(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	for _, h := range []stream.Hooks{stream.Log(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))), stream.Log(nil)} {
		h.Delivered(t.Context(), jobs.Delivery{})
		h.Delayed(t.Context(), jobs.Ticket{})
		h.Queued(t.Context(), jobs.Ticket{})
		h.Tried(t.Context(), stream.Try{})
		h.MadeStuck(t.Context(), stream.Entry{})
	}
	for _, line := range []string{"job delivered", "jobs delayed", "ticket queued", "ticket tried", "operation is stuck"} {
		if strings.Count(log.String(), line) != 1 {
			t.Errorf("%q is not said once:\n%s", line, log.String())
		}
	}
}
