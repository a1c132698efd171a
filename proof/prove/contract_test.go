package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// created answers each request to the API by 201.
type created struct{}

func (created) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// A broken rule of the claim's contract fails it; what samekey check can't say shows nothing.
func TestContract(t *testing.T) {
	t.Parallel()
	const checks = `{"requests": 19, "checks": [{"under": {"stripe": "ok", "ietf": "fault"}}, {"under": {"stripe": "ok"}}, ` +
		`{"under": {"stripe": "norule"}, "faults": [{"rule": "r", "seen": "s", "breaks": {"ietf": "2.1"}}]}]`
	for says, want := range map[string]Result{
		checks + `}`:                        {Status: Passed, Figure: "2 checks hold, by 19 requests"},
		checks + `, "trouble": "it ended"}`: {Status: NotShown, Figure: "2 checks hold, by 19 requests", Why: "it ended"},
		strings.Replace(checks, "ietf\": \"2", "stripe\": \"2", 1) + `}`: {Status: Failed, Figure: "2 checks hold, by 19 requests", Why: "r: s"},
		`{}`:      {Status: NotShown, Figure: "0 checks hold, by 0 requests", Why: "samekey check says nothing"},
		`no JSON`: {Status: NotShown, Why: "samekey check: exit status 3: the last words"},
	} {
		samekey := filepath.Join(t.TempDir(), "samekey")
		script := "#!/bin/sh\n[ \"$PROVE_CALLER\" ] || exit 9\ncat <<'END'\n" + says + "\nEND\necho the last words >&2\nexit 3\n"
		if err := os.WriteFile(samekey, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		p := &Place{API: "https://api", HTTP: &http.Client{Transport: created{}}, Samekey: samekey, meter: &meter{most: Cost{Bookings: 41}}}
		figure, err := p.contract(t.Context(), p.API, "/presets/stripe", "stripe", 40)
		if got := (Claim{}).judge(p, figure, err); got != want {
			t.Errorf("%s: got %+v, want %+v", says, got, want)
		}
	}
}
