package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

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
		"a part, long ago":         {[]run{{40, true, 0}, {10, false, patience + 1}}, false, false, false},
		"undone long after one":    {[]run{{101, true, 0}, {1, false, patience + 1}}, true, false, true},
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
		other, _ := p.over(operation, complete, records, now, patience)
		if over != test.over || other != over || (err != nil) != test.failed {
			t.Errorf("%s: %t, %t, %v", name, over, other, err)
		}
	}
}

// Records are written by eight writers at once, at 3000 a second, and none after a refusal.
func TestFill(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		records, refused int
		want             string
	}{
		{60, 0, "6 calls, 61 records, true, 167ms"}, {225, 0, "19 calls, 226 records, true, 333ms"}, {226, 0, "20 calls, 227 records, true, 333ms"}, {400, 1, "9 calls, 1 records, false, 67ms"}, // call 1 is the scan
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newInMemory()
			it := keyOf("v1#plain#")
			it["st"] = &types.AttributeValueMemberS{Value: "done"}
			m.items["records"] = append(m.items["records"], it)
			m.refuse = func(n int) error {
				if n > 1 && test.refused > 0 {
					return refusal("AccessDenied", "no")
				}
				return nil
			}
			p := m.place()
			p.Swept = test.records
			p.meter.begin(sweep().Cost)
			err := p.fill(t.Context())
			if got := fmt.Sprintf("%d calls, %d records, %t, %s", m.calls, len(m.items["records"]), err == nil, time.Since(m.began).Round(time.Millisecond)); got != test.want {
				t.Errorf("%d: %s", test.records, got)
			}
		})
	}
}

// A sweep notes what it finds first, and when.
func TestFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newInMemory()
		p := m.place()
		var all []map[stream.Reason]time.Duration
		for range 3 {
			_, err := p.sweepOnce(t.Context())
			found := map[stream.Reason]time.Duration{}
			for reason, at := range p.found {
				found[reason] = at.Sub(m.began)
			}
			all = append(all, found)
			if err := sleep(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Error(err)
			}
		}
		both := map[stream.Reason]time.Duration{stream.ReasonUndelivered: 0, stream.ReasonOpen: time.Second}
		if diff := cmp.Diff([]map[stream.Reason]time.Duration{{stream.ReasonUndelivered: 0}, both, both}, all); diff != "" {
			t.Error(diff)
		}
	})
}
