package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
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
func counts(rep *stream.Report) map[stream.Reason]int {
	m := make(map[stream.Reason]int)
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

func item(t testing.TB, m map[string]any) map[string]types.AttributeValue {
	t.Helper()
	out := make(map[string]types.AttributeValue)
	for name, v := range m {
		out[name] = attribute(t, v)
	}
	return out
}

func attribute(t testing.TB, v any) types.AttributeValue {
	t.Helper()
	for kind, content := range v.(map[string]any) {
		switch kind {
		case "S":
			return tabletest.Str(content.(string))
		case "N":
			return &types.AttributeValueMemberN{Value: content.(string)}
		case "M":
			return &types.AttributeValueMemberM{Value: item(t, content.(map[string]any))}
		}
	}
	t.Fatalf("no attribute: %v", v)
	return nil
}

//nolint:tparallel // one table
func TestListNamesEverythingLeftUndone(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	crowd(t, tab)

	t.Run("while it is young: only what waits for people anyway", func(t *testing.T) {
		want := map[stream.Reason]int{stream.ReasonStuck: 1, stream.ReasonParked: 1, stream.ReasonUnreadable: 1}
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
		want := map[stream.Reason]int{
			stream.ReasonStuck: 1, stream.ReasonParked: 1, stream.ReasonUnreadable: 1, stream.ReasonOpen: 2, stream.ReasonNoRequest: 1,
			stream.ReasonExpiring: 1, stream.ReasonUndelivered: 2, stream.ReasonKept: 1,
		}
		if diff := cmp.Diff(want, counts(rep)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if rep.Scanned != 12 || len(rep.Entries) != 10 || rep.Delivered+rep.LetGo+rep.Queued+rep.MadeStuck+rep.Young != 0 {
			t.Errorf("got %+v", rep)
		}
		if tally := rep.ByReason[stream.ReasonOpen]; tally.Oldest < 3590 || tally.Oldest > 3700 {
			t.Errorf("the oldest open one is %d s old, want an hour", tally.Oldest)
		}
		if len(skipped) != 1 || skipped[0].Reason != stream.SkipUnreadable || skipped[0].Record == "" {
			t.Errorf("told %+v", skipped)
		}
		if n := strings.Count(log.String(), "msg=unfinished"); n != 10 {
			t.Errorf("%d lines for 10 entries:\n%s", n, log.String())
		}
		for _, e := range rep.Entries {
			if e.PK == "" || e.Record == "" || e.Reason != stream.ReasonUnreadable && (e.ID == "" || e.Run.IsZero() || e.Created.IsZero()) {
				t.Errorf("entry %+v", e)
			}
			switch {
			case e.Reason == stream.ReasonStuck && (e.LastErr != "gave up" || e.Tries != 3 || e.Route != "POST /orders"):
				t.Errorf("entry %+v", e)
			case e.Reason == stream.ReasonParked && (e.Job != "0.0" || e.Kind != "poison" || e.LastErr != "bad" || e.Tries != 5):
				t.Errorf("entry %+v", e)
			case e.Reason == stream.ReasonUnreadable && (e.PK != "v1##future" || !strings.Contains(e.LastErr, "layout version 2")):
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
		tab := newTable(t)
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
			ticket := jobs.TicketFor(rec)
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
			want := map[stream.Reason]int{stream.ReasonStuck: 1, stream.ReasonUnknown: 1, stream.ReasonParked: 1, stream.ReasonUnreadable: 1, stream.ReasonExpiring: 1}
			if diff := cmp.Diff(want, counts(rep)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	})
}

// What the sweep leaves alone, though it could act.
func TestSweepWaitsForTheStream(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after time.Duration
		want  map[stream.Reason]int
		acts  int
	}{
		"at once":                                        {0, map[stream.Reason]int{}, 0},
		"a lease and a grace later: listed":              {6 * time.Minute, map[stream.Reason]int{stream.ReasonOpen: 1}, 0},
		"after 16 minutes: jobs":                         {16 * time.Minute, map[stream.Reason]int{stream.ReasonOpen: 1, stream.ReasonUndelivered: 1, stream.ReasonKept: 1}, 2},
		"15 minutes after lease and grace: tickets, too": {22 * time.Minute, map[stream.Reason]int{stream.ReasonOpen: 1, stream.ReasonUndelivered: 1, stream.ReasonKept: 1}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			run(t, idem.New(tab.Store, callertest.Anybody), one("job"))
			tab.finished(t, nil)
			begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), nothing)
			rep, err := tab.sweep(in(test.after), func(o *stream.SweepOptions) {
				o.Drain, o.Queue = stream.NewDrain(tab.Store, &outbox{}), &tickets{}
			}).Run(t.Context())
			if err != nil || rep.Delivered+rep.LetGo+rep.Queued != test.acts {
				t.Errorf("got %+v, %v", rep, err)
			}
			if diff := cmp.Diff(test.want, counts(rep)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What nobody can complete is listed until its client no longer will either; then
// it is given up, once.
func TestSweepGivesUpAfterRetention(t *testing.T) {
	t.Parallel()
	sweeps(t, func(t *testing.T, newSweep makeSweep) {
		const day, week = 24 * time.Hour, 7 * 24 * time.Hour // of the function
		for name, test := range map[string]struct {
			retention, after time.Duration
			answer           error
			asked            int
			gaveUp           int
			fails            bool
		}{
			"before":                      {day, 23 * time.Hour, nil, 0, 0, false},
			"after":                       {day, 25 * time.Hour, nil, 1, 1, false},
			"before another retention":    {week, 25 * time.Hour, nil, 0, 0, false},
			"after another retention":     {week, 8 * 24 * time.Hour, nil, 1, 1, false},
			"somebody went on with it":    {day, 25 * time.Hour, jobs.ErrMoved, 1, 0, false},
			"somebody is at work":         {day, 25 * time.Hour, idem.ErrInFlight, 1, 0, false},
			"the store is down":           {day, 25 * time.Hour, idem.ErrUnavailable, 1, 0, true},
			"nobody said how to do it":    {day, 25 * time.Hour, nil, 0, 0, false},
			"its lease ends in a century": {day, 25 * time.Hour, idem.ErrInFlight, 1, 0, false},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t)
				change := map[string]any{"req": nil}
				if strings.Contains(name, "century") {
					change["lease_ms"] = digits(time.Now().AddDate(100, 0, 0).UnixMilli())
				}
				if test.retention != day { // the default
					change["retain_s"] = digits(int64(test.retention / time.Second))
				}
				tab.Put(t, item(t, open(change)))
				asked := 0
				rep, err := newSweep(tab, &outbox{}, &tickets{}, in(test.after), func(o *stream.SweepOptions) {
					o.MarkStuck = func(_ context.Context, ticket jobs.Ticket, why string) error {
						asked++
						if ticket.PK != "v1##open" || ticket.Ver != 1 || why == "" {
							t.Errorf("asked to give up %+v because %q", ticket, why)
						}
						return test.answer
					}
					if strings.HasPrefix(name, "nobody") {
						o.MarkStuck = nil
					}
				}).Run(t.Context())
				if (err != nil) != test.fails || asked != test.asked || rep.MadeStuck != test.gaveUp || rep.ByReason[stream.ReasonNoRequest].Count != 1 {
					t.Errorf("asked %d times, got %+v, %v", asked, rep, err)
				}
			})
		}
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
			tab.Transport.Fault = tabletest.On("Scan", 1, dynamotest.AnswerError(400, "AccessDeniedException", "injected"))
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
			if err != nil || rep.Delivered != 0 || rep.ByReason[stream.ReasonUndelivered].Count != 1 {
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
		t.Run("a budget that ends", func(t *testing.T) {
			rep, err := tab.sweep(in(time.Hour), func(o *stream.SweepOptions) {
				o.PagesPerSecond, o.Budget, o.PageSize = 1, 50*time.Millisecond, 1
			}).List(t.Context())
			if err != nil || rep.Complete || rep.Pages > 1 {
				t.Errorf("got %+v, %v", rep, err)
			}
		})
	})
}

// The scan keeps its pace, whatever the table holds.
func TestSweepIsPaced(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	began := time.Now()
	rep, err := tab.sweep(func(o *stream.SweepOptions) { o.PagesPerSecond, o.Segments = 20, 5 }).List(t.Context())
	if took := time.Since(began); err != nil || rep.Pages != 5 || took < 4*time.Second/20 {
		t.Errorf("%d pages in %v, %v", rep.Pages, took, err)
	}
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
	if err != nil || json.Unmarshal(out, &rep) != nil || !rep.Complete || rep.ByReason[stream.ReasonUndelivered].Count != 1 {
		t.Errorf("got %s, %v", out, err)
	}
}
