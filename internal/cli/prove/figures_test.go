package prove

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The calls, units and dollars that a run expects are those of the performance page.
func TestFiguresOfThePage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../proof/bench/results.json")
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Paths []struct {
			ID      string         `json:"id"`
			Calls   map[string]int `json:"calls"`
			Units   int            `json:"write_units"`
			Own     int            `json:"your_write_units"`
			Dollars json.Number    `json:"dollars_per_million"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{"new": "new", "replay": "replay", "phases": "phases-2"}
	for _, a := range ways() {
		found := false
		for _, p := range page.Paths {
			if p.ID != ids[a.name] {
				continue
			}
			found = true
			calls := map[string]int{}
			for _, c := range a.calls {
				calls[c]++
			}
			for name, n := range p.Calls {
				if calls[name] != n || len(calls) != len(p.Calls) {
					t.Errorf("%s makes %v, and the page says %v", a.name, calls, p.Calls)
				}
			}
			if p.Units != a.units+a.refused || p.Own != a.own { // a refused write of less than a KB has a unit, in no answer
				t.Errorf("%s takes %d and %d units, and the page says %d and %d", a.name, a.units, a.own, p.Units, p.Own)
			}
			if a.refused == 0 && !strings.Contains(a.sum(), " "+p.Dollars.String()+" dollars a million") {
				t.Errorf("%s: %s, and the page says %s dollars", a.name, a.sum(), p.Dollars)
			}
		}
		if !found {
			t.Errorf("the page has no %s", a.name)
		}
	}
}

// Lambda's reports, as text and as JSON, are read; a start beyond its limit fails, and a log without a report shows
// nothing.
func TestInit(t *testing.T) {
	t.Parallel()
	const asText, asJSON = "REPORT RequestId: a\tDuration: 2.1 ms\tInit Duration: 61.26 ms\t\n", `{"type":"platform.report","record":{"metrics":{"durationMs":2.1,"initDurationMs":74.9}}}`
	for _, test := range []struct {
		logs   []string
		status Status
		says   string
	}{
		{[]string{asText, asJSON}, Passed, "75 ms, the longest of 2 starts"},
		{[]string{asText, "REPORT RequestId: a\tDuration: 2.1 ms\n"}, Passed, "61 ms, the longest of 1 starts"},
		{[]string{strings.Replace(asText, "61", "10000", 1)}, Failed, ""},
		{[]string{"START"}, NotShown, ""},
		{nil, NotShown, ""},
	} {
		figure, err := examineInit(t.Context(), &Place{starts: test.logs})
		if r := (Claim{}).judge(&Place{}, figure, err); r.Status != test.status || r.Figure != test.says {
			t.Errorf("%q: %+v", test.logs, r)
		}
	}
}
