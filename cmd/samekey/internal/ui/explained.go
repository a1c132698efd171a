package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
)

// storyOf returns a record's story for the page. The command "samekey get" prints the
// same story.
func storyOf(r *store.Record, g stream.Glimpse, now time.Time, listed []stream.Entry, unknown, sealed string) *Story {
	e := records.Explain(r, records.StoryOptions{Now: now, Listed: listed, ListedUnknown: unknown, Sealed: sealed})
	said := []string{e.Summary}
	if sealed != "" {
		said = append(said, sealed)
	}
	return &Story{
		Row: rowOf(g), Seen: seenOf(r), ID: r.ID, Said: said, Next: nextOf(e), Facts: factsOf(e), Spans: spansOf(e), Offers: offersOf(r, now),
	}
}

func nextOf(e *records.Story) (steps []Step) {
	for _, n := range e.Next {
		steps = append(steps, Step{At: milli(n.When), Who: n.Who, What: n.What, Command: n.Command})
	}
	return steps
}

func factsOf(e *records.Story) []Fact {
	facts := make([]Fact, 0, len(e.Facts))
	for _, f := range e.Facts {
		facts = append(facts, Fact{Label: f.Label, Value: f.Value})
	}
	for _, f := range []Fact{
		{Label: "State", Value: e.State},
		{Label: "Claimed", At: milli(e.Claimed)},
		{Label: "Lease ends", At: milli(e.Lease)},
		{Label: "Expires", At: milli(e.Expires)},
		{Label: "Last error", Value: e.Error},
		{Label: "Calls", Value: e.CallsNote},
		{Label: "Writes so far", Value: fmt.Sprintf("%d, of about %d bytes each", e.Cost.Writes, e.Cost.Bytes)},
	} {
		if f.Value != "" || f.At != 0 {
			facts = append(facts, f)
		}
	}
	return facts
}

// failedEnds are the ends of attempts that the page shows as failures.
var failedEnds = map[string]bool{"died": true, "stuck": true}

func spansOf(e *records.Story) (spans []Span) {
	for _, a := range e.Attempts {
		s := Span{Lane: "attempt", Name: "by " + a.By + ": " + a.End, State: "done", From: milli(a.Began), To: milli(a.Ended), Note: sentence(a.Error, a.Note)}
		switch a.By {
		case "client":
			s.Name = "the client’s request: " + a.End
		case "retry":
			s.Name = "the client’s retry: " + a.End
		case "completer":
			s.Name = "the completer: " + a.End
		}
		switch {
		case a.End == "working":
			s.State = "running"
		case failedEnds[a.End] || a.Error != "":
			s.State = "failed"
		}
		spans = append(spans, s)
	}
	for _, p := range e.Phases {
		s := Span{Lane: "phase", Name: p.Name, State: "done", From: milli(p.Committed) - p.TookMS, To: milli(p.Committed)}
		if p.Unknown { // the phase's call is in doubt, so the phase has no known end
			s.State, s.From, s.To = "unknown", milli(p.Committed), 0
		}
		spans = append(spans, s)
	}
	for _, c := range e.Calls {
		name := c.Service
		if c.Step != "" {
			name += "/" + c.Step
		} else if c.Number > 0 {
			name += " #" + strconv.Itoa(c.Number)
		}
		s := Span{Lane: "call", Name: name, State: "done", Note: "under the key " + c.Key}
		if c.State != "recorded" {
			s.State, s.From = "unknown", milli(c.Since)
		}
		spans = append(spans, s)
	}
	for _, j := range e.Jobs {
		s := Span{Lane: "job", Name: j.Kind + " (" + j.Name + ")", State: j.State, Note: sentence(j.Error)}
		if j.Tries > 0 {
			s.Note = sentence(fmt.Sprintf("%d deliveries failed", j.Tries), j.Error)
		}
		spans = append(spans, s)
	}
	for _, d := range e.Decisions {
		spans = append(spans, Span{Lane: "decision", Name: d.What, State: "done", From: milli(d.At), Note: sentence("by " + d.By)})
	}
	return spans
}

// sentence joins the parts with semicolons, and leaves out empty parts.
func sentence(parts ...string) string {
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, "; ")
}
