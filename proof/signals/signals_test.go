package signals_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/metrictable"
	"github.com/samekey/samekey/internal/testkit/emf"
	"github.com/samekey/samekey/internal/testkit/leaktest"
)

// Every metric of the list is emitted on a real path, and no other; every line is in
// CloudWatch's format; and neither metrics nor logs nor tickets have a key, a body, an
// answer, a query, a header, a result or the arguments of a job, in any form.
func TestSignalsOfEverythingThatHappens(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.requests()
	requests := s.emf.bytes()
	s.background()

	log := s.emf.bytes()
	lines, err := emf.Parse(log)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for i := range lines {
		for name := range lines[i].Values {
			got = append(got, name)
		}
		if d := lines[i].Dimensions; d[0]["App"] != "shop" || len(d) > 1 && d[1]["Route"] != route || lines[i].Namespace != metrictable.Namespace {
			t.Errorf("dimensions %v", d)
		}
	}
	for _, m := range metrictable.All() {
		want = append(want, m.Name)
		for i := range lines {
			if unit, there := lines[i].Units[m.Name]; there && unit != m.Unit {
				t.Errorf("%s is in %s, want %s", m.Name, unit, m.Unit)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("metrics (-listed +emitted):\n%s", diff)
	}
	for name, texts := range map[string][][]byte{"metrics": {log}, "logs": {s.log.bytes()}, "tickets": s.queue.all} {
		if found := leaktest.Find(texts, slices.Collect(maps.Values(secrets))...); len(texts) == 0 || len(found) != 0 {
			t.Errorf("%d texts of the %s have %q", len(texts), name, found)
		}
	}
	if len(s.own) == 0 {
		t.Error("the application's own hook was told nothing")
	}
	s.everyRequestHasOneLine(requests)
	s.everyLogLineNamesItsRecord()
}

// everyRequestHasOneLine checks the lines of requests: one each, with the counts of
// its events.
func (s *story) everyRequestHasOneLine(log []byte) {
	lines, err := emf.Parse(log)
	if err != nil {
		s.Fatal(err)
	}
	byEvents := make(map[string]int)
	for i := range lines {
		l := &lines[i]
		events, of := l.Properties["events"].(string)
		if !of {
			continue // an observed one, or the test's own reads
		}
		byEvents[events]++
		for _, name := range []string{"Claimed", "Replayed", "Mismatch", "Stuck"} {
			if want := float64(strings.Count(" "+events+" ", " "+name+" ")); l.Sum(name) != want {
				s.Errorf("%s: %v, want %v of %q", name, l.Sum(name), want, events)
			}
		}
		if len(l.Values["Duration"]) != 1 || l.Properties["route"] != route {
			s.Errorf("a request without duration or route: %+v", l)
		}
		if events == "Claimed Committed Committed Finished" && (l.Sum("StoreCalls") < 3 || l.Sum("WriteUnits") < 3 || len(l.Values["PhaseDuration"]) != 2) {
			s.Errorf("a request with phases: %+v", l)
		}
	}
	for _, events := range []string{"Replayed", "Mismatch", "InFlight", "Limited", "Refused", "TakenOver Finished", "Claimed LeaseLost Replayed", "Claimed Stuck", "Claimed Failed Unstored"} {
		if byEvents[events] != 1 {
			s.Errorf("%d requests with the events %q, want one; all: %v", byEvents[events], events, byEvents)
		}
	}
	rate := (emf.Sum(lines, "Replayed") + emf.Sum(lines, "InFlight") + emf.Sum(lines, "TakenOver")) / emf.Sum(lines, "Requests")
	if rate <= 0 || rate >= 1 {
		s.Errorf("a retry rate of %v", rate)
	}
}

// everyLogLineNamesItsRecord checks the log lines of requests.
func (s *story) everyLogLineNamesItsRecord() {
	ended := 0
	for raw := range bytes.Lines(s.log.bytes()) {
		var line map[string]any
		if err := json.Unmarshal(raw, &line); err != nil {
			s.Fatal(err)
		}
		if line["msg"] != "request ended" {
			continue
		}
		ended++
		if record, _ := line["record"].(string); len(record) != 8 && line["events"] != "Refused" {
			s.Errorf("no record: %s", raw)
		}
		if want := map[any]string{"Claimed Stuck": "ERROR", "Mismatch": "WARN", "Replayed": "INFO"}[line["events"]]; want != "" && line["level"] != want {
			s.Errorf("the level is not %s: %s", want, raw)
		}
	}
	if ended < 15 {
		s.Errorf("%d requests have ended", ended)
	}
}
