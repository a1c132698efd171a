package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/internal/base/retrysign"
)

// A retry under a key tells how many attempts came before, those of an earlier process
// too. A first attempt has what its caller has set.
func TestRetriesSaySo(t *testing.T) {
	t.Parallel()
	const none = "none"
	for name, tt := range map[string]struct {
		method, set string
		resumed     bool
		want        []string
	}{
		"a new request":          {method: "POST", want: []string{none, "1", "2"}},
		"the caller's own":       {method: "POST", set: "7", want: []string{"7", "1", "2"}},
		"an earlier process's":   {method: "POST", resumed: true, want: []string{"1", "2", "3"}},
		"a request without keys": {method: "GET", want: []string{none, none, none}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{failing(errReset), answer(503), answer(200)}}
				req := request(t, tt.method, "x")
				opt := func(*client.Options) {}
				if tt.resumed {
					path := journalFile(t)
					j := open(t, path)
					dead := &script{steps: []step{failing(errReset)}}
					_, _ = client.New(dead, with(j), func(o *client.Options) { o.MaxRetries = -1 }).RoundTrip(named(t, tt.method, "order", "x"))
					crash(t, j)
					req, opt = named(t, tt.method, "order", "x"), with(open(t, path))
				}
				if tt.set != "" {
					req.Header.Set(retrysign.Client, tt.set)
				}
				status(t, client.New(s, opt), req)
				var got []string
				for _, a := range s.attempts() {
					said := none
					if values := a.Header[retrysign.Client]; len(values) > 0 {
						said = values[0]
					}
					got = append(got, said)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
