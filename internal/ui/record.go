package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
)

func shortName(pk string) string { return redact.Record(pk) }

// Story implements [Source].
func (t *Table) Story(ctx context.Context, pk string, personal bool) (*Story, error) {
	rec, err := t.store.Load(ctx, pk)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		row, _, _ := t.Row(ctx, pk)
		return &Story{Row: row, Seen: "-", Said: []string{
			"This program can't read the record: " + err.Error(),
			"Nothing changes it. A program of its version, or a repair by hand, can.",
		}}, nil
	case err != nil:
		return nil, t.said(err)
	case rec == nil:
		return nil, ErrGone
	}
	s := storyOf(rec, t.sweep.Glimpse(rec))
	if personal {
		s.Personal = personalOf(rec)
	}
	return s, nil
}

// seenOf names a record as it is: who wrote it last, how often it was written, and its
// operation.
func seenOf(r *store.Record) string { return fmt.Sprintf("%s.%d.%s", r.Owner, r.Ver, r.ID) }

func storyOf(r *store.Record, g stream.Glimpse) *Story {
	s := &Story{Row: rowOf(g), Seen: seenOf(r), ID: r.ID, Spans: spansOf(r), Offers: offersOf(r, g)}
	s.Said = saidOf(r, s.Row)
	s.Facts = factsOf(r)
	return s
}

// saidOf tells where the operation is, and last what comes next.
func saidOf(r *store.Record, row Row) []string {
	var said []string
	if r.LastErr != "" && r.State != store.Done {
		said = append(said, "Last error: "+r.LastErr)
	}
	switch {
	case r.State == store.Stuck:
		return append(said, "It waits for a person: a retry lets it be tried again, an answer ends it.")
	case r.Blocked:
		return append(said, "Its program refuses to go on: change the program, or end it with an answer.")
	case r.State == store.Done:
		said = append(said, fmt.Sprintf("Finished with status %d.", r.Response.Status))
		if slices.Contains(row.Why, string(stream.WhyParked)) {
			return append(said, "A job is parked: remove the cause of its failures, and hand it out again.")
		}
		return append(said, "Retries get the stored answer.")
	case r.Lease.IsZero():
		return append(said, "No attempt holds it: the client's next retry takes it up, or the completer.")
	}
	return append(said, "An attempt holds it until its lease ends. Then the client's next retry takes it up, or the completer.")
}

func factsOf(r *store.Record) []Fact {
	facts := []Fact{{Label: "Record", Value: r.PK}, {Label: "Operation", Value: r.ID}}
	add := func(label, value string) {
		if value != "" {
			facts = append(facts, Fact{Label: label, Value: value})
		}
	}
	at := func(label string, at int64) {
		if at != 0 {
			facts = append(facts, Fact{Label: label, At: at})
		}
	}
	add("Scope", r.Scope)
	add("Function", r.Handler.Function)
	add("Handler", r.Handler.Name)
	add("Tenant", r.Tenant)
	at("Claimed", milli(r.Created))
	at("Last attempt", milli(r.Run))
	at("Lease ends", milli(r.Lease))
	at("Replayed until", milli(r.Until))
	at("Expires", milli(r.Expires))
	if r.Tries > 0 {
		add("Tries by the completer", strconv.Itoa(r.Tries))
	}
	if len(r.Doubts) > 0 {
		add("Calls in doubt", strings.Join(r.Doubts, ", "))
		at("In doubt since", milli(r.DoubtSince))
	}
	return facts
}

func spansOf(r *store.Record) []Span {
	spans := []Span{{Lane: "claim", Name: "the request came", State: "done", From: milli(r.Created)}}
	for _, p := range r.Phases {
		span := Span{Lane: "phase", Name: p.Name, State: "done"}
		if p.Intent {
			span.State = "unknown"
		}
		spans = append(spans, span)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Jobs)) {
		j := r.Jobs[name]
		span := Span{Lane: "job", Name: name + " " + j.Kind, State: "waiting", Note: j.Failed}
		if j.Failed != "" {
			span.State = "parked"
		}
		spans = append(spans, span)
	}
	for _, d := range r.Settled {
		spans = append(spans, Span{Lane: "decision", Name: d.What, State: "done", From: milli(d.At), Note: d.By})
	}
	return spans
}

func personalOf(r *store.Record) *Personal {
	p := &Personal{Parts: []Part{}}
	if in := r.Input; in != nil {
		head := in.Method + " " + in.Path
		if in.Query != "" {
			head += "?" + in.Query
		}
		p.Request = messageOf(head, in.Header, in.Body, in.Overflow)
	}
	if re := r.Response; re != nil {
		p.Answer = messageOf(fmt.Sprint(re.Status), re.Header, re.Body, r.Overflow)
	}
	for _, phase := range r.Phases {
		if len(phase.Result) > 0 {
			p.Parts = append(p.Parts, Part{"Result of phase " + phase.Name, indented(phase.Result)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Jobs)) {
		p.Parts = append(p.Parts, Part{"Arguments of job " + name, indented(r.Jobs[name].Args)})
	}
	return p
}

func messageOf(head string, h http.Header, body []byte, elsewhere *store.Overflow) *Message {
	m := &Message{Head: head, Headers: [][2]string{}}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		m.Headers = append(m.Headers, [2]string{name, strings.Join(h[name], ", ")})
	}
	switch {
	case elsewhere != nil:
		m.Note = fmt.Sprintf("The body has %d bytes, outside of the record.", elsewhere.Length)
	case !utf8.Valid(body):
		m.Note = fmt.Sprintf("The body has %d bytes that are no text.", len(body))
	default:
		m.Body = string(body)
	}
	return m
}

func indented(raw []byte) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(json.RawMessage(raw)); err != nil {
		return string(raw)
	}
	return strings.TrimSpace(b.String())
}

// Find implements [Source].
func (t *Table) Find(ctx context.Context, s Search) ([]string, error) {
	if _, ok, err := t.Row(ctx, s.Any); ok || err != nil {
		return []string{s.Any}, err
	}
	return nil, nil
}
