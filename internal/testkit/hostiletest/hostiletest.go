// Package hostiletest has hostile records: their texts try to command the terminal, the
// page or the shell of a person who reads the table.
package hostiletest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// The constant forged begins a line of [Text]. No line of a program's output may begin
// with forged, because a person could take such a line for the program's own text.
const forged = "FORGED-LINE"

// Text has characters that move the cursor, set a title, hide text, reverse text and end
// a line.
const Text = "\x1b[2J\x1b]0;owned\a\u009b31m\u202e\u2066\u200b\u2028\r\n" + forged + "'; $(id) `id`\t\x7f"

// Claimed makes [Records], writes them to the store s, and returns them.
func Claimed(t testing.TB, s store.Store, namespace string, now time.Time) map[string]*store.Record {
	t.Helper()
	all := Records(namespace, now)
	for name, rec := range all {
		if held, err := s.Claim(t.Context(), store.Claim{Next: rec.Clone(), Now: now}); err != nil || held != nil {
			t.Fatalf("%s: %v, %v", name, held, err)
		}
	}
	return all
}

// Records returns a record for each situation, such as "abandoned" or "replayable". The
// map's key is the situation's name. Every text of a record is hostile. The records are
// claimed at the time now. One minute later, each record is in its situation.
func Records(namespace string, now time.Time) map[string]*store.Record {
	raw, _ := json.Marshal(Text) // a string
	raw = []byte(strings.ReplaceAll(string(raw), `\u2028`, "\u2028"))
	phase := store.Phase{Name: "phase" + Text, Result: raw, At: time.Second}
	intent := store.Phase{Name: "call" + Text, Intent: true, At: 2 * time.Second}
	parked := map[string]store.Job{"0.0": {Kind: "kind" + Text, Args: raw, Group: Text, Tries: 3, Failed: "failed" + Text}, "0.1" + Text: {Kind: Text, Args: raw, Failed: Text}}
	answer := &store.Response{Status: 201, Header: http.Header{"X-" + Text: {Text}, "Content-Type": {"text/html" + Text}}, Body: []byte("body" + Text)}
	later := now.Add(time.Hour)
	n := 0
	all := make(map[string]*store.Record)
	add := func(name string, change func(*store.Record)) {
		n++
		r := &store.Record{
			PK: fmt.Sprintf("v1#%s#%d%s", namespace, n, Text), State: store.Open, Owner: "owner" + Text, Ver: 1, ID: fmt.Sprintf("id%d%s", n, Text),
			Fingerprint: "fp" + Text, Secret: "secret" + Text, Scheme: Text, Created: now, Run: now, Lease: later, Keep: store.KeepOpen, Retention: 24 * time.Hour,
			Phases: []store.Phase{phase}, Jobs: map[string]store.Job{}, Calls: map[string]int{"bank" + Text + "/" + Text: 1, "maps#": 1},
			Input:   &store.Input{Method: "POST" + Text, Path: "/" + Text, Query: Text, Header: http.Header{Text: {Text}}, Body: []byte(Text)},
			LastErr: "error" + Text, Route: "POST /" + Text, Scope: "jwt:" + Text, Handler: store.HandlerID{Function: "function" + Text, Name: "handler" + Text}, Tenant: "tenant" + Text,
			Settled:   []store.Decision{{By: "by" + Text, At: now, What: "what" + Text, From: Text, To: Text}},
			Handovers: []store.Handover{{At: now, Kind: state.HandoverRelease, Function: Text, Err: "handed" + Text}},
		}
		change(r)
		all[name] = r
	}
	add("held", func(*store.Record) {})
	add("abandoned", func(r *store.Record) { r.Lease = now.Add(time.Second) })
	add("no request", func(r *store.Record) { r.Lease, r.Input = time.Time{}, nil })
	add("released", func(r *store.Record) { r.Lease, r.Keep, r.Expires = time.Time{}, store.KeepNothing, later })
	add("blocked", func(r *store.Record) { r.Lease, r.Blocked, r.WaitSince = time.Time{}, true, now })
	add("unknown", func(r *store.Record) {
		r.State, r.Lease, r.WaitSince, r.Phases = store.Stuck, time.Time{}, now, []store.Phase{phase, intent}
	})
	add("doubts", func(r *store.Record) {
		r.State, r.Lease, r.WaitSince, r.Doubts, r.DoubtSince = store.Stuck, time.Time{}, now, []string{"bank" + Text, state.AnyCall}, now
	})
	add("stuck", func(r *store.Record) { r.State, r.Lease, r.WaitSince = store.Stuck, time.Time{}, now })
	done := func(keep store.Keep, until, expires time.Time, jobs map[string]store.Job) func(*store.Record) {
		return func(r *store.Record) {
			r.State, r.Keep, r.Lease, r.Input, r.Response, r.Until, r.Expires, r.Retention = store.Done, keep, time.Time{}, nil, answer, until, expires, 0
			if maps.Copy(r.Jobs, jobs); len(jobs) > 0 {
				r.WaitSince = now
			}
		}
	}
	add("kept", done(store.KeepJobs, later, time.Time{}, parked))
	add("replayable", done(store.KeepNothing, time.Time{}, later, nil))
	add("free", done(store.KeepNothing, time.Time{}, now.Add(-time.Minute), nil))
	add("later", func(r *store.Record) {
		done(store.KeepJobs, later, time.Time{}, nil)(r)
		r.Jobs["0.0"] = store.Job{Kind: "kind" + Text, Args: raw, Group: Text, At: later}
		r.Jobs["0.1"+Text] = store.Job{Kind: Text, Args: raw, At: later.Add(time.Hour)}
	})
	return all
}

// CheckJSON applies [Check] to each string and each member's name in the JSON text raw.
// Unlike Check, it allows forged lines.
func CheckJSON(t *testing.T, what string, raw []byte) {
	t.Helper()
	var all any
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Errorf("%s: %v in %q", what, err, raw)
	}
	var check func(any)
	check = func(v any) {
		switch v := v.(type) {
		case string:
			Check(t, what, strings.ReplaceAll(v, forged, ""))
		case []any:
			for _, e := range v {
				check(e)
			}
		case map[string]any:
			for name, e := range v {
				check(name)
				check(e)
			}
		}
	}
	check(all)
}

// Check fails t if the output got has a character that controls a terminal, reverses
// text or hides text. Newlines and tabs are allowed. Check also fails t if got has a
// forged line. The parameter what names the output in messages.
func Check(t *testing.T, what, got string) {
	t.Helper()
	for i, c := range got {
		if c == '\n' || c == '\t' || !unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			continue
		}
		t.Errorf("%s has %U: …%q", what, c, got[max(0, i-60):min(len(got), i+20)])
		return
	}
	if strings.Contains("\n"+got, "\n"+forged) {
		t.Errorf("%s has a forged line:\n%s", what, got)
	}
}
