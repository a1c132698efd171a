package ui

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// at returns a time in epoch seconds, and ms the same time for the page.
func at(s int64) time.Time { return time.Unix(s, 0) }

func ms(s int64) int64 { return 1000 * s }

// rides returns records of each kind by name, at the time 100.
func rides() map[string]*store.Record {
	const call = `{"id":"text"}`
	booked, asked := store.Phase{Name: "booked", Result: []byte(`{"id":7}`), At: 2 * time.Second}, store.Phase{Name: "charged", Intent: true, Shape: call, At: 3 * time.Second}
	all := make(map[string]*store.Record)
	add := func(name string, change func(*store.Record)) {
		r := &store.Record{
			PK: "v1#rides#a", State: store.Open, Owner: "me", Ver: 3, ID: "ID", Created: at(10), Run: at(10), Keep: store.KeepOpen, Retention: time.Hour,
			Phases: []store.Phase{booked}, Route: "POST /rides", Scope: "jwt:jane", Handler: store.HandlerID{Name: "create"}, Tries: 2,
		}
		change(r)
		all[name] = r
	}
	stuck := func(r *store.Record) { r.State, r.LastErr = store.Stuck, "the bank is down" }
	done := func(r *store.Record) {
		r.State, r.Keep, r.Expires, r.Response, r.LastErr = store.Done, store.KeepNothing, at(1000), &store.Response{Status: 201}, "once"
	}
	add("held", func(r *store.Record) { r.Lease, r.Doubts = at(200), []string{"bank#1"} })
	add("released", func(*store.Record) {})
	add("nothing done", func(r *store.Record) { r.Phases = nil })
	add("stuck", stuck)
	add("call unknown", func(r *store.Record) { stuck(r); r.Phases = append(r.Phases, asked) })
	add("call unknown in flight", func(r *store.Record) { r.Lease, r.Phases = at(50), append(r.Phases, asked) })
	add("call in doubt", func(r *store.Record) { stuck(r); r.Doubts = []string{"bank#1"} })
	add("calls in doubt", func(r *store.Record) { stuck(r); r.Doubts = []string{"bank#1", "bank#2"} })
	add("result given", func(r *store.Record) {
		asked.Intent, asked.Result = false, []byte(`{"id":"x"}`)
		r.Phases, r.Settled = append(r.Phases, asked), []store.Decision{{What: "result of charged"}}
	})
	add("done", done)
	add("free", func(r *store.Record) { done(r); r.Expires = at(99) })
	add("jobs", func(r *store.Record) {
		done(r)
		r.Keep = store.KeepJobs
		r.Jobs = map[string]store.Job{"0.0": {Kind: "a"}, "0.1": {Failed: "no"}, "0.2": {Failed: "no"}, "0.3": {At: at(500)}, "0.4": {At: at(500)}, "0.5": {Failed: "no"}}
	})
	return all
}

// A record has an offer exactly if the action fits, and the offer holds
// everything that the action needs.
func TestOffers(t *testing.T) {
	t.Parallel()
	const shape = `{"id":"text"}`
	retry, settle, release := Offer{Do: "retry", Label: "Try again"}, Offer{Do: "settle", Label: "Give an answer"}, Offer{Do: "release", Label: "Release the lease"}
	forget := func(loses ...string) Offer { return Offer{Do: "forget", Label: "Forget", Loses: loses} }
	want := map[string][]Offer{
		"held":                   {release, forget("attempt", "work")},
		"released":               {settle, forget("work")},
		"nothing done":           {settle, forget()},
		"stuck":                  {retry, settle, forget("work")},
		"call unknown":           {{Do: "retry", Label: "Decide", Call: "charged", Result: true, Shape: shape}, settle, forget("work")},
		"call unknown in flight": {settle, release, forget("work")},
		"call in doubt":          {{Do: "retry", Label: "Decide", Call: "bank#1"}, settle, forget("work")},
		"calls in doubt":         {{Do: "retry", Label: "Decide", Call: "bank#1, bank#2"}, settle, forget("work")},
		"result given":           {{Do: "retry", Label: "Correct the result", Call: "charged", Result: true, Given: true, Shape: shape}, settle, forget("work")},
		"done":                   {forget("work")},
		"free":                   nil,
		"jobs": {
			{Do: "redrive", Label: "Redrive parked jobs", Jobs: []string{"0.1", "0.2", "0.5"}}, {Do: "cancel", Label: "Cancel later jobs", Jobs: []string{"0.3", "0.4"}}, forget("work", "jobs"),
		},
	}
	got := make(map[string][]Offer)
	for name, rec := range rides() {
		got[name] = offersOf(rec, at(100))
		for _, o := range got[name] {
			if o.Hint == "" {
				t.Errorf("%s: %+v has no hint", name, o)
			}
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Offer{}, "Hint")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The timeline has each part of a story, with the times and the state that the page paints.
func TestSpans(t *testing.T) {
	t.Parallel()
	e := &records.Story{
		Attempts: []records.Attempt{
			{By: "client", Began: at(1), End: "died", Note: "its lease ended"},
			{By: "retry", Began: at(2), End: "stuck"},
			{By: "completer", Began: at(3), End: "released", Ended: at(4), Error: "bank is down", Note: "it waits"},
			{By: "unknown", Began: at(5), End: "working"},
			{By: "client", End: "answered", Ended: at(6)},
		},
		Phases: []records.Phase{{Name: "booked", Committed: at(3), TookMS: 1}, {Name: "charged", Unknown: true}},
		Calls: []records.Call{
			{Service: "bank", Step: "pay/day", Number: 2, Key: "k1", State: "recorded", Since: at(7)},
			{Service: "bank", Number: 1, Key: "k2", State: "in doubt", Since: at(7)},
			{Service: "maps", Key: "k3", State: "recorded"},
		},
		Jobs:      []records.Job{{Kind: "mail", Name: "0.0", State: "waiting", Error: "no"}, {Kind: "push", Name: "0.1", State: "parked", Tries: 1, Error: "no"}},
		Decisions: []records.Decision{{By: "jane", At: at(8), What: "try again"}},
	}
	want := []Span{
		{Lane: "attempt", Name: "the client’s request: died", State: "failed", From: ms(1), Note: "its lease ended"},
		{Lane: "attempt", Name: "the client’s retry: stuck", State: "failed", From: ms(2)},
		{Lane: "attempt", Name: "the completer: released", State: "failed", From: ms(3), To: ms(4), Note: "bank is down; it waits"},
		{Lane: "attempt", Name: "by unknown: working", State: "running", From: ms(5)},
		{Lane: "attempt", Name: "the client’s request: answered", State: "done", To: ms(6)},
		{Lane: "phase", Name: "booked", State: "done", From: ms(3) - 1, To: ms(3)},
		{Lane: "phase", Name: "charged", State: "unknown"},
		{Lane: "call", Name: "bank/pay/day", State: "done", Note: "under the key k1"},
		{Lane: "call", Name: "bank #1", State: "unknown", From: ms(7), Note: "under the key k2"},
		{Lane: "call", Name: "maps", State: "done", Note: "under the key k3"},
		{Lane: "job", Name: "mail (0.0)", State: "waiting", Note: "no"},
		{Lane: "job", Name: "push (0.1)", State: "parked", Note: "1 deliveries failed; no"},
		{Lane: "decision", Name: "try again", State: "done", From: ms(8), Note: "by jane"},
	}
	if diff := cmp.Diff(want, spansOf(e)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The page shows personal data as it was sent, and indents JSON.
func TestPersonal(t *testing.T) {
	t.Parallel()
	rec := rides()["jobs"]
	header := http.Header{"X-B": {"1", "2"}, "X-A": {"3"}}
	rec.Phases = []store.Phase{{Name: "empty"}, {Name: "bare", Result: []byte("7")}, {Name: "odd", Result: []byte("{")}}
	rec.Input = &store.Input{Method: "POST", Path: "/rides", Query: "a=1", Header: header, Body: []byte("\xff"), Overflow: nil}
	rec.Response, rec.Overflow = &store.Response{Status: 201, Body: []byte("part")}, &store.Overflow{Length: 500_000}
	rec.Jobs = map[string]store.Job{"0.1": {Args: []byte(`{"to":"<jane>"}`)}, "0.0": {Args: []byte(`1`)}}
	headers := [][2]string{{"X-A", "3"}, {"X-B", "1, 2"}}
	want := &Personal{
		Request: &Message{Head: "POST /rides?a=1", Headers: headers, Note: "The body of 1 bytes is not text."},
		Answer:  &Message{Head: "201", Headers: [][2]string{}, Note: "The body of 500000 bytes is not in the record itself, and is not shown here."},
		Parts: []Part{
			{"Result of phase bare", "7"},
			{"Result of phase odd", "{"},
			{"Arguments of job 0.0", "1"},
			{"Arguments of job 0.1", "{\n  \"to\": \"<jane>\"\n}"},
		},
	}
	if diff := cmp.Diff(want, personalOf(rec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rec.Input.Query, rec.Input.Body, rec.Overflow = "", []byte("text"), nil
	want = &Personal{Request: &Message{Head: "POST /rides", Headers: headers, Body: "text"}, Answer: &Message{Head: "201", Headers: [][2]string{}, Body: "part"}, Parts: want.Parts}
	if diff := cmp.Diff(want, personalOf(rec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&Personal{Parts: []Part{}}, personalOf(&store.Record{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The wish for an action asks for nothing that the page didn't send.
func TestWishes(t *testing.T) {
	t.Parallel()
	rec := rides()["jobs"]
	for name, tt := range map[string]struct {
		do   Action
		want records.Wish
	}{
		"retry":             {Action{Do: "retry", By: "jane", Many: true}, records.Wish{Do: "retry", By: "jane", Many: true}},
		"not made":          {Action{Do: "retry", NotMade: true}, records.Wish{Do: "settle", Settlement: idem.Settlement{NotMade: true}}},
		"risk":              {Action{Do: "retry", RiskTwice: true}, records.Wish{Do: "settle", Settlement: idem.Settlement{RiskTwice: true}}},
		"result":            {Action{Do: "retry", Result: []byte("1")}, records.Wish{Do: "settle", Settlement: idem.Settlement{Result: []byte("1")}}},
		"an answer":         {Action{Do: "settle", Status: 201, Body: "b", ContentType: "text/plain"}, answering(&idem.Response{Status: 201, Body: []byte("b"), Header: http.Header{"Content-Type": {"text/plain"}}})},
		"an empty answer":   {Action{Do: "settle", Status: 204, ContentType: "text/plain", NotMade: true}, answering(&idem.Response{Status: 204, Body: []byte{}})},
		"forget":            {Action{Do: "forget", Loses: []string{"attempt"}}, records.Wish{Do: "forget", Loss: idem.Loss{Held: true}}},
		"forget work, jobs": {Action{Do: "forget", Loses: []string{"work", "jobs"}}, records.Wish{Do: "forget", Loss: idem.Loss{Work: true, Jobs: true}}},
		"all parked":        {Action{Do: "redrive", Loses: []string{"work"}}, records.Wish{Do: "redrive"}},
		"a parked one":      {Action{Do: "redrive", Jobs: []string{"0.1", "9.9"}}, records.Wish{Do: "redrive", Jobs: []string{"0.1"}}},
		"all later":         {Action{Do: "cancel"}, records.Wish{Do: "cancel"}},
		"a later one":       {Action{Do: "cancel", Jobs: []string{"0.3"}}, records.Wish{Do: "cancel", Jobs: []string{"0.3"}}},
		"none of its jobs":  {Action{Do: "cancel", Jobs: []string{"9.9"}}, records.Wish{Do: "cancel", Jobs: []string{"9.9"}}},
		"release":           {Action{Do: "release", Jobs: []string{"0.1"}, Loses: []string{"work"}, NotMade: true}, records.Wish{Do: "release"}},
	} {
		if diff := cmp.Diff(tt.want, wishOf(rec, tt.do)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func answering(r *idem.Response) records.Wish {
	return records.Wish{Do: "settle", Settlement: idem.Settlement{Answer: r}}
}
