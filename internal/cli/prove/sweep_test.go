package prove

import (
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/stream"
)

// A sweep fails if it leaves something undone for long after a pass, or sees too little of the table again and again. A
// table that takes long to fill, or a pass of which the schedule did a part, fails nothing.
func TestPasses(t *testing.T) {
	t.Parallel()
	const records = 100
	patience := time.Minute
	type run struct {
		scanned  int
		complete bool
		after    time.Duration
	}
	for name, test := range map[string]struct {
		runs         []run
		undone       bool
		over, failed bool
	}{
		"none":                     {nil, true, false, false},
		"a pass in two runs":       {[]run{{60, false, 0}, {50, true, 0}}, false, true, false},
		"a pass that isn't done":   {[]run{{160, false, 0}}, false, false, false},
		"a part by the schedule":   {[]run{{40, true, 0}, {101, true, 0}}, false, true, false},
		"two parts":                {[]run{{40, true, 0}, {60, true, 0}}, false, false, false},
		"three passes see little":  {[]run{{100, true, 0}, {100, true, 0}, {100, true, 0}}, false, false, true},
		"long before a pass":       {[]run{{60, false, time.Hour}}, true, false, false},
		"not long after a pass":    {[]run{{101, true, 0}, {101, true, patience}}, true, false, false},
		"undone long after a pass": {[]run{{101, true, 0}, {101, true, patience + 1}}, true, false, true},
	} {
		began := time.Now()
		now := began
		var p passes
		for _, r := range test.runs {
			now = began.Add(r.after)
			p.add(stream.Report{Scanned: r.scanned, Complete: r.complete}, now)
		}
		operation := complete
		if test.undone {
			operation = effects{rides: 1}
		}
		over, err := p.over(complete, operation, records, now, patience)
		if over != test.over || (err != nil) != test.failed {
			t.Errorf("%s: %t, %v", name, over, err)
		}
	}
}
