package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// Of a batch each operation that is left open has one ticket, unless its ticket waits already;
// what went away unfinished is told.
func TestTicketsOfABatch(t *testing.T) {
	t.Parallel()
	now := time.Now().Add(1000 * time.Hour) // by the completer's own clock
	open := func(id string, ver int64, mods ...func(*store.Record)) *store.Record {
		r := &store.Record{PK: "v1##" + id, ID: id, Ver: ver, State: store.Open, Keep: store.KeepOpen, Input: &store.Input{}, Lease: now.Add(time.Duration(ver) * time.Minute)}
		for _, mod := range mods {
			mod(r)
		}
		return r
	}
	decided := func(r *store.Record) { r.Lease, r.Settled = time.Time{}, []store.Decision{{By: "jane", At: now}} }
	settled := func(r *store.Record) { r.Settled = []store.Decision{{By: "jane", At: now}} }
	stuck := func(r *store.Record) { r.State, r.Lease = store.Stuck, time.Time{} }
	done := func(r *store.Record) { r.State, r.Keep = store.Done, "" }
	noRequest := func(r *store.Record) { r.Input = nil }
	anew := open("b", 1)
	anew.PK = "v1##a"
	for name, tt := range map[string]struct {
		changes []change
		tickets []string // operation, and minutes from now
		expired []string
	}{
		"a claim":                            {[]change{{new: open("a", 1)}}, []string{"a in 6m"}, nil},
		"two operations":                     {[]change{{new: open("b", 1)}, {new: open("a", 1)}}, []string{"b in 6m", "a in 6m"}, nil},
		"a claim, and a phase":               {[]change{{new: open("a", 1)}, {old: open("a", 1), new: open("a", 2)}}, []string{"a in 7m"}, nil},
		"a phase: its ticket waits":          {[]change{{old: open("a", 1), new: open("a", 2)}}, nil, nil},
		"two phases: its ticket waits":       {[]change{{old: open("a", 1), new: open("a", 2)}, {old: open("a", 2), new: open("a", 3)}}, nil, nil},
		"a phase stores its request":         {[]change{{old: open("a", 1, noRequest), new: open("a", 2)}}, []string{"a in 7m"}, nil},
		"a request that isn't stored":        {[]change{{new: open("a", 1, noRequest)}}, nil, nil},
		"a claim, and a finish":              {[]change{{new: open("a", 1)}, {old: open("a", 1), new: open("a", 2, done)}}, nil, nil},
		"people end its lease":               {[]change{{old: open("a", 1), new: open("a", 2, decided)}}, []string{"a in 5m"}, nil},
		"that retry fails: its ticket waits": {[]change{{old: open("a", 3, settled), new: open("a", 4, decided)}}, nil, nil},
		"they do, and a retry takes it":      {[]change{{old: open("a", 1), new: open("a", 2, decided)}, {old: open("a", 2, decided), new: open("a", 3)}}, []string{"a in 8m"}, nil},
		"stuck":                              {[]change{{old: open("a", 1), new: open("a", 2, stuck)}}, nil, nil},
		"stuck, and tried again":             {[]change{{old: open("a", 1), new: open("a", 2, stuck)}, {old: open("a", 2, stuck), new: open("a", 3)}}, []string{"a in 8m"}, nil},
		"deleted":                            {[]change{{old: open("a", 1)}}, nil, []string{"a"}},
		"claimed, and deleted":               {[]change{{new: open("a", 1)}, {old: open("a", 1)}}, nil, []string{"a"}},
		"deleted when it was done":           {[]change{{old: open("a", 1, done)}}, nil, nil},
		"deleted when it was stuck":          {[]change{{old: open("a", 1, stuck)}}, nil, []string{"a"}},
		"its key is used anew":               {[]change{{old: open("a", 1), new: anew}}, []string{"b in 6m"}, []string{"a"}},
		"a phase, and its key is used anew":  {[]change{{old: open("a", 1), new: open("a", 2)}, {old: open("a", 2), new: anew}}, []string{"b in 6m"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &ticketList{}
			var expired []string
			c := NewCompleter(q, func(o *CompleterOptions) {
				o.Now, o.Grace, o.Logger = func() time.Time { return now }, 5*time.Minute, slog.New(slog.DiscardHandler)
				o.Hooks.ExpiredOpen = func(_ context.Context, e Entry) { expired = append(expired, e.ID) }
			})
			for i := range tt.changes {
				tt.changes[i].at, tt.changes[i].time = i, now
			}
			quiet := NewCompleter(&ticketList{}, func(o *CompleterOptions) { o.Logger = slog.New(slog.DiscardHandler) })
			if first := quiet.run(t.Context(), tt.changes); first != none {
				t.Errorf("without hooks: comes again from %d", first)
			}
			if first := c.run(t.Context(), tt.changes); first != none {
				t.Errorf("comes again from %d", first)
			}
			var got []string
			for _, ticket := range q.got {
				got = append(got, fmt.Sprintf("%s in %.0fm", ticket.Operation, ticket.Due.Sub(now).Minutes()))
			}
			if !slices.Equal(got, tt.tickets) || !slices.Equal(expired, tt.expired) || q.calls != min(len(tt.tickets), 1) {
				t.Errorf("tickets %q in %d calls, want %q; expired %q, want %q", got, q.calls, tt.tickets, expired, tt.expired)
			}
		})
	}
}

// The first ticket that the queue refuses has its stream record come again, unless the sweep
// makes another.
func TestRefusedTickets(t *testing.T) {
	t.Parallel()
	for _, leave := range []bool{false, true} {
		q := &ticketList{refuse: func(t jobs.Ticket) error {
			switch t.PK {
			case "b":
				return errors.New("refused")
			case "c":
				return jobs.ErrHeldBack
			}
			return nil
		}}
		queued := 0
		var log bytes.Buffer
		c := NewCompleter(q, func(o *CompleterOptions) {
			o.LeaveToSweep, o.Logger = leave, slog.New(slog.NewTextHandler(&log, nil))
			o.Hooks.Queued = func(context.Context, jobs.Ticket) { queued++ }
		})
		want := 4
		if leave {
			want = none
		}
		if first := c.put(t.Context(), []jobs.Ticket{{PK: "a"}, {PK: "b"}, {PK: "c"}, {PK: "d"}}, []int{3, 4, 5, 6}); first != want || queued != 2 {
			t.Errorf("left to the sweep %v: comes again from %d, %d queued", leave, first, queued)
		}
		if n := strings.Count(log.String(), "ticket not queued"); n != 1 { // nobody has asked about the one that was held back
			t.Errorf("%d tickets are told:\n%s", n, log.String())
		}
	}
}
