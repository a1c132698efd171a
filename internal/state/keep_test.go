package state

import (
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// A record that must be kept has no expiry: TTL can't delete it, and no claim can
// overwrite it.
func TestKeptRecordsHaveNoExpiry(t *testing.T) {
	t.Parallel()
	now, lease := time.Unix(1_000_000, 0), time.Unix(1_000_030, 0)
	plain := Claimed(store.Record{PK: "p", ID: "i"}, now, lease, Life{})
	withJobs := *plain
	withJobs.Jobs = map[string]store.Job{"0.0": {Kind: "mail"}}
	for name, tt := range map[string]struct {
		got  *store.Record
		want store.Keep
	}{
		"a claim":                         {plain, store.KeepNothing},
		"a claim with its request stored": {Claimed(store.Record{PK: "p", Input: &store.Input{}}, now, lease, Life{}), store.KeepOpen},
		"a first phase":                   {Advanced(plain, now, []store.Phase{{Name: "one"}}, nil, nil), store.KeepOpen},
		"a first phase with jobs only":    {Advanced(plain, now, nil, map[string]store.Job{"0.0": {Kind: "mail"}}, nil), store.KeepOpen},
		"a commit of nothing":             {Advanced(plain, now, nil, nil, nil), store.KeepNothing},
		"given up":                        {MadeStuck(plain, now, "nobody came"), store.KeepOpen},
		"finished with jobs":              {Finished(&withJobs, store.Response{Status: 201}, now), store.KeepJobs},
		"finished without":                {Finished(plain, store.Response{Status: 201}, now), store.KeepNothing},
	} {
		if tt.got.Keep != tt.want || tt.got.Expires.IsZero() != (tt.want != store.KeepNothing) {
			t.Errorf("%s: keep %q, expires %v; want keep %q, and an expiry only without", name, tt.got.Keep, tt.got.Expires, tt.want)
		}
	}
}
