package main

import (
	"strings"
	"testing"
)

// A finder that misses a bug fails the run, unless the bug is outside of its subject;
// so does a finder that fails without a bug. A bug reaches the programs that a finder
// builds.
func TestPlantedBugs(t *testing.T) {
	t.Parallel()
	strong, weak := finder{"strong", target{"p", "^TestAbs$"}, false, nil}, finder{"weak", target{"p", "^TestWeak$"}, true, nil}
	sign := mutant{rule: "sign", what: "the sign stays", in: "p.Abs", old: "return -$n", new: "return $n"}
	found := bug{mutant: sign, layer: "sign"}
	outside := found
	outside.outside = map[string]string{"weak": "it looks at nothing"}
	elsewhere := found
	elsewhere.memory = &mutant{in: "p.Abs", old: "$n < 0", new: "$n > 0"}
	for name, tc := range map[string]struct {
		finders []finder
		bug     bug
		err     string // a part of it
		out     string // likewise
	}{
		"found":                      {[]finder{strong}, found, "", `"found":1,"missed":0,"outside":0`},
		"found in a built program":   {[]finder{{"builder", target{"q", "^TestProgram$"}, false, nil}}, found, "", `"found":1,"missed":0`},
		"missed by one":              {[]finder{strong, weak}, found, "1 planted bugs were not found", "NOT FOUND"},
		"outside of one":             {[]finder{strong, weak}, outside, "", "it looks at nothing"},
		"in the memory store":        {[]finder{{"memory", target{"p", "^TestAbs$"}, true, nil}}, elsewhere, "", `"found":1,"missed":0`},
		"a finder that always fails": {[]finder{{"broken", target{"p", "^TestFails$"}, false, nil}}, found, "without a bug", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := sample(t).findPlanted(t.Context(), tc.finders, []bug{tc.bug}, &out)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || !strings.Contains(out.String(), tc.out) {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}
