package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// typed runs a command at which somebody types.
func (d *desk) typed(t *testing.T, line string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return callWith(t, line, d.env, append([]string{"stuck"}, args...)...)
}

// What can't be undone is shown as the program will see it, and done only after a
// yes.
func TestStuckAsks(t *testing.T) {
	d := newDesk(t)
	pk := d.stuckPK(t)
	before, err := d.store.Load(t.Context(), pk)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args  []string
		shown string
	}{
		"a text":         {[]string{"retry", "-result", `"ch\u005f1"`}, "The call of phase \"charge_created\" came to the text ch_1\n"},
		"a text in JSON": {[]string{"retry", "-result", `"\"ch_1\""`}, `came to the text "ch_1"`},
		"a number":       {[]string{"retry", "-result", `1e3`}, "came to the number 1e3\n"},
		"null":           {[]string{"retry", "-result", `null`}, "came to null\n"},
		"an object":      {[]string{"retry", "-result", `{"id":"ch_1"}`}, "came to an object:\n{\n  \"id\": \"ch_1\"\n}\n"},
		"a list":         {[]string{"retry", "-result", `["ch_1"]`}, "came to a list:\n[\n  \"ch_1\"\n]\n"},
		"not made":       {[]string{"retry", "-not-made"}, "The call of phase \"charge_created\" had no effect. It is made once more.\n"},
		"risk twice":     {[]string{"retry", "-risk-twice"}, "charge_created\" may have been made. It is made once more, and may then have its effect twice.\n"},
		"an answer":      {[]string{"answer", "-status", "410", "-body", "gone\x1b[2J"}, "POST /rides is over: its client gets 410 from now on, with 8 bytes:\ngone [2J\n"},
	} {
		for _, typed := range []string{"", "\n", "n\n", "yesterday\n"} {
			code, stdout, stderr := d.typed(t, typed, append(tt.args, pk)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, tt.shown) || !strings.Contains(stderr, "not confirmed") {
				t.Errorf("%s, %q typed: code %d, %q, %q; want %q", name, typed, code, stdout, stderr, tt.shown)
			}
		}
	}
	if now, err := d.store.Load(t.Context(), pk); err != nil || now.Ver != before.Ver {
		t.Errorf("version %d, %v: was written without a yes", now.Ver, err)
	}
	if code, stdout, stderr := d.typed(t, "Yes\n", "retry", "-result", `"ch_1"`, pk); code != 0 || !strings.Contains(stdout, "open") {
		t.Errorf("yes typed: code %d, %q, %q", code, stdout, stderr)
	}
}

// A contradiction is refused, whatever is confirmed.
func TestStuckResultOrNotMade(t *testing.T) {
	d := newDesk(t)
	pk := d.stuckPK(t)
	for _, flags := range [][]string{{"-not-made", "-result", `"ch_1"`}, {"-risk-twice", "-result", `"ch_1"`}, {"-risk-twice", "-not-made"}} {
		d.fails(t, 1, "contradict each other", append(append([]string{"retry", "-yes"}, flags...), pk)...)
	}
	if rec, err := d.store.Load(t.Context(), pk); err != nil || rec.State != store.Stuck {
		t.Errorf("state %q, %v", rec.State, err)
	}
}

// Who decided what, and when, is shown, also once its client has its answer.
func TestStuckShowsWhoDecided(t *testing.T) {
	d := newDesk(t)
	pk, calls := d.stuckPK(t), 1
	delete(d.env, "USER")
	d.fails(t, 1, "who decides?", "retry", "-yes", "-not-made", pk)
	d.fails(t, 1, "who decides?", "answer", "-yes", "-status", "410", pk)
	d.ok(t, "retry", "-yes", "-not-made", "-by", "jane", pk)
	if res, err := d.pay(t.Context(), "k", &calls); err != nil || string(res.Body) != "ch_new" {
		t.Fatalf("%s, %v", res.Body, err)
	}
	var got shown
	if err := json.Unmarshal([]byte(d.ok(t, "show", pk)), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Settled) != 1 || got.Settled[0].By != "jane" || got.Settled[0].What != "not made: charge_created" ||
		time.Since(got.Settled[0].At).Abs() > time.Hour || got.State != "done" {
		t.Errorf("shown %+v", got)
	}
}
