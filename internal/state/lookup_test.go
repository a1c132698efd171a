package state

import (
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// What follows from a look-up, by what it found, by when it began after the last copy of the
// call, and by whether the call may be made again at all.
func TestWhatFollowsFromALookUp(t *testing.T) {
	t.Parallel()
	const within = 15 * time.Minute
	sent := time.Unix(1_000_000, 0)
	for name, tt := range map[string]struct {
		found Found
		after time.Duration // the look-up began
		never bool

		want   Course
		counts bool
		word   string
	}{
		"made, at once":                         {FoundMade, -time.Second, false, UseResult, false, "made"},
		"made, late":                            {FoundMade, time.Hour, false, UseResult, false, "made"},
		"made, and never to be made again":      {FoundMade, 0, true, UseResult, false, "made"},
		"not made, while it may be sent":        {FoundNotMade, -time.Second, false, AskAgain, false, "not made yet"},
		"not made, to the very end":             {FoundNotMade, within, false, AskAgain, false, "not made yet"},
		"not made, after that":                  {FoundNotMade, within + 1, false, CallOnce, false, "not made"},
		"not made, never to be made again":      {FoundNotMade, within + 1, true, ToPeople, true, "not made"},
		"not made yet, never to be made again":  {FoundNotMade, within, true, AskAgain, false, "not made yet"},
		"not made, by a clock behind":           {FoundNotMade, -time.Hour, false, AskAgain, false, "not made yet"},
		"unknown, too early to count":           {FoundNothing, within, false, AskAgain, false, "unknown"},
		"unknown, late":                         {FoundNothing, within + 1, false, AskAgain, true, "unknown"},
		"unknown, never to be made again":       {FoundNothing, within + 1, true, AskAgain, true, "unknown"},
		"a contradiction, at once":              {FoundContradiction, 0, false, ToPeople, false, "contradiction"},
		"a contradiction, late":                 {FoundContradiction, time.Hour, false, ToPeople, true, "contradiction"},
		"a contradiction, never made once more": {FoundContradiction, time.Hour, true, ToPeople, true, "contradiction"},
	} {
		a := Asking{Sent: sent, Within: within, Began: sent.Add(tt.after), Never: tt.never, Found: tt.found}
		if c, counts := a.Decide(); c != tt.want || counts != tt.counts || a.Word() != tt.word {
			t.Errorf("%s: got course %v, counts %t, word %q; want %v, %t, %q", name, c, counts, a.Word(), tt.want, tt.counts, tt.word)
		}
	}
}

// Whether a call in doubt is looked up, or made under its key; and until when it may have been
// sent.
func TestWhichDoubtsAreLookedUp(t *testing.T) {
	t.Parallel()
	run, until := claimedAt.Add(time.Hour), claimedAt.Add(time.Minute)
	atLast := run.Add(maxHold) // of a holder of which nothing is known
	keyed := Doubtful{Phase: "pay", Call: "bank#1", Memory: 23 * time.Hour}
	keyless := Doubtful{Phase: "pay", Call: "bank#1", Memory: 23 * time.Hour, Keyless: true}
	never := Doubtful{Phase: "pay", Call: "bank#1"}
	begun := []store.Phase{{Name: "pay", Intent: true}}
	noted := func(phase string, sent time.Time) *store.Asked { return &store.Asked{Phase: phase, Sent: sent} }
	for name, tt := range map[string]struct {
		d      Doubtful
		doubts []string
		until  time.Time
		phases []store.Phase
		asked  *store.Asked
		after  time.Duration // now, after the first call

		want     bool
		sent     time.Time
		stranger string
	}{
		"no doubt":                                        {d: keyless, sent: atLast},
		"a doubt of another phase":                        {d: keyless, doubts: []string{"?fax"}, until: until, sent: atLast},
		"its key is remembered":                           {d: keyed, doubts: []string{AnyCall}, until: until, after: 22 * time.Hour, sent: until},
		"its key may be forgotten":                        {d: keyed, doubts: []string{AnyCall}, until: until, after: 23 * time.Hour, want: true, sent: until},
		"its name is known":                               {d: keyed, doubts: []string{"bank#1"}, until: until, after: 23 * time.Hour, want: true, sent: until},
		"it has no key":                                   {d: keyless, doubts: []string{"?pay"}, until: until, want: true, sent: until},
		"it is never repeated":                            {d: never, doubts: []string{"?pay"}, until: until, want: true, sent: until},
		"it is never repeated, a clock behind":            {d: never, doubts: []string{"?pay"}, until: until, after: -time.Hour, want: true, sent: until},
		"another call is in doubt too":                    {d: keyless, doubts: []string{"?pay", "fax#1"}, until: until, want: true, sent: until, stranger: "fax#1"},
		"its begin is a phase":                            {d: keyless, phases: begun, want: true, sent: atLast},
		"its begin is a phase, beside a doubt of another": {d: keyless, phases: begun, doubts: []string{"?fax"}, until: until, want: true, sent: atLast},
		"it was looked up before":                         {d: keyless, phases: begun, asked: noted("pay", until), want: true, sent: until},
		"its doubt had ended":                             {d: keyless, phases: begun, asked: noted("pay", time.Time{}), want: true, sent: atLast},
		"another phase was looked up":                     {d: keyless, phases: begun, asked: noted("fax", until), want: true, sent: atLast},
		"another attempt may have called since":           {d: keyless, doubts: []string{"?pay"}, until: until, asked: noted("pay", claimedAt), want: true, sent: until},
		"nobody knows until when":                         {d: keyless, doubts: []string{"?pay"}, want: true, sent: atLast},
	} {
		r := &store.Record{Run: run, Doubts: tt.doubts, DoubtUntil: tt.until, Phases: tt.phases, Asked: tt.asked}
		if len(tt.doubts) > 0 {
			r.DoubtSince = claimedAt
		}
		if got := tt.d.Asks(r, claimedAt.Add(tt.after)); got != tt.want {
			t.Errorf("%s: looked up: got %t, want %t", name, got, tt.want)
		}
		if got := tt.d.Sent(r); !got.Equal(tt.sent) {
			t.Errorf("%s: may have been sent until: got %v, want %v", name, got, tt.sent)
		}
		if got := tt.d.Stranger(r); got != tt.stranger {
			t.Errorf("%s: another call: got %q, want %q", name, got, tt.stranger)
		}
	}
}

// A renewal, whose acknowledgement was lost, isn't taken for the write before a call that a
// look-up has not found: the next look-up would count from the earlier copies.
func TestARenewalIsNoWriteBeforeACall(t *testing.T) {
	t.Parallel()
	d := Doubtful{Phase: "pay", Call: "bank#1", Keyless: true, Memory: time.Hour}
	for name, held := range map[string]func(*store.Record){
		"the first look-up": func(r *store.Record) { r.Doubts, r.Mark = []string{"?pay"}, "?pay" },
		"a later one":       func(r *store.Record) { r.Doubts, r.Mark = []string{"?pay"}, "?pay"; asked(r) },
		"beside another doubt": func(r *store.Record) {
			r.Doubts, r.Mark = []string{"?fax", "?pay"}, "?pay"
			asked(r)
		},
	} {
		prev := with(held)
		renewed, calling := Renewed(prev, clock, nextLease), d.CallingOnce(prev, nil)
		Stamp(renewed, prev, prev.Owner)
		Stamp(calling, prev, prev.Owner)
		if got := Land(renewed, prev, calling, prev.Owner); got != Crossed {
			t.Errorf("%s: got %v, want it crossed (%v)", name, got, Crossed)
		}
		if !Renewal(renewed, prev) {
			t.Errorf("%s: a renewal isn't known as one", name)
		}
	}
}
