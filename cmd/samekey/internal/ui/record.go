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
	"time"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

func shortName(pk string) string { return redact.Record(pk) }

// Story implements [Source].
func (t *Table) Story(ctx context.Context, pk string, personal bool) (*Story, error) {
	rec, sealed, err := t.load(ctx, pk)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		row, _, _ := t.Row(ctx, pk)
		return &Story{Row: row, Seen: "-", Said: []string{
			"This program can't read the record: " + err.Error(),
			"Samekey changes no record that it can't read. Deploy the version that wrote the record, or repair the record by hand.",
		}}, nil
	case err != nil:
		return nil, t.said(err)
	}
	about := rec
	if rec == nil {
		about = &store.Record{PK: pk}
	}
	listed, err := stream.Listed(ctx, t.store, about)
	unknown := ""
	switch {
	case rec == nil && err != nil:
		return nil, t.said(err)
	case rec == nil && len(listed) > 0 && strings.HasPrefix(pk, state.NoTicket):
		return &Story{Row: Row{PK: pk, Name: shortName(pk), Reasons: []string{string(listed[0].Reason)}, Error: listed[0].LastErr}, Seen: "-", Said: []string{
			"This entry is not a record. It names a message that was no ticket and has left the tickets' queue.",
			"The entry leaves the list within a day, or at once if you run samekey forget " + pk + ".",
		}}, nil
	case rec == nil:
		return nil, ErrGone
	case err != nil:
		unknown = t.said(err).Error()
	}
	s := storyOf(rec, t.sweep.Glimpse(rec), time.Now(), listed, unknown, sealed)
	switch {
	case personal && sealed != "":
		s.Personal = &Personal{Parts: []Part{{"Sealed", sealed}}}
	case personal:
		s.Personal = personalOf(rec)
	}
	return s, nil
}

// Table.load reads a record. If the record's contents can't be opened, the result
// sealed says why. Otherwise sealed is "".
func (t *Table) load(ctx context.Context, pk string) (rec *store.Record, sealed string, err error) {
	rec, err = t.store.Load(ctx, pk)
	if rec != nil && errors.Is(err, store.ErrSealed) {
		return rec, t.sealedText(err), nil
	}
	return rec, "", err
}

func (t *Table) sealedText(err error) string {
	if t.opt.Seal == nil {
		return "The record is sealed, and the page has no data key. Start samekey ui with --keys-from set to a program that has the keys."
	}
	return "The record is sealed, and the page has no data key, because the program of --keys-from failed: " + err.Error() + "."
}

// seenOf returns a text that changes with each write of the record. It consists of the
// record's owner, the number of writes, and the operation's id.
func seenOf(r *store.Record) string { return fmt.Sprintf("%s.%d.%s", r.Owner, r.Ver, r.ID) }

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
		p.Answer = messageOf(strconv.Itoa(re.Status), re.Header, re.Body, r.Overflow)
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
		m.Note = fmt.Sprintf("The body of %d bytes is not in the record itself, and is not shown here.", elsewhere.Length)
	case !utf8.Valid(body):
		m.Note = fmt.Sprintf("The body of %d bytes is not text.", len(body))
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
