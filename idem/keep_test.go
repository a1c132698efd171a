package idem

import (
	"testing"
	"time"
)

// What must be kept has no expiry: TTL can't delete it, and no claim can get
// over it.
func TestKeptRecordsHaveNoExpiry(t *testing.T) {
	t.Parallel()
	now, lease := time.Unix(1_000_000, 0), time.Unix(1_000_030, 0)
	plain := claimed(Record{PK: "p", Owner: "a", ID: "i"}, now, lease, 2*time.Hour)
	withJobs := *plain
	withJobs.Jobs = map[string]Job{"0.0": {Kind: "mail"}}
	for name, tt := range map[string]struct {
		got  *Record
		want Keep
	}{
		"a claim":                         {plain, KeepNothing},
		"a claim with its request stored": {claimed(Record{PK: "p", Input: &Input{}}, now, lease, 2*time.Hour), KeepOpen},
		"a first phase":                   {advanced(plain, []Phase{{Name: "one"}}, nil, nil), KeepOpen},
		"a first phase with jobs only":    {advanced(plain, nil, map[string]Job{"0.0": {Kind: "mail"}}, nil), KeepOpen},
		"a commit of nothing":             {advanced(plain, nil, nil, nil), KeepNothing},
		"given up":                        {stuckFor(plain, "nobody came"), KeepOpen},
		"finished with jobs":              {finished(&withJobs, Response{Status: 201}, now, 2*time.Hour, 0), KeepJobs},
		"finished without":                {finished(plain, Response{Status: 201}, now, 2*time.Hour, 0), KeepNothing},
	} {
		if tt.got.Keep != tt.want || tt.got.Expires.IsZero() != (tt.want != KeepNothing) {
			t.Errorf("%s: keep %q, expires %v; want keep %q, and an expiry only without", name, tt.got.Keep, tt.got.Expires, tt.want)
		}
	}
}
