package stream_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/seal"
)

// stuckWithRequest begins an operation of a request with this body, with committed work,
// and gives it up.
func stuckWithRequest(t *testing.T, tab *table, key, body string, optFns ...func(*idem.Options)) {
	t.Helper()
	begin(t, tab, tabletest.Post(key, body), phase, optFns...)
	ahead := idem.New(tab.Store, callertest.Anybody, tabletest.Ahead(time.Hour))
	if err := ahead.MarkStuck(t.Context(), jobs.TicketFor(tab.Only(t)), "for this test"); err != nil {
		t.Fatal(err)
	}
}

// Without a decision of people the contents of a stuck operation's request go after 30
// days, wherever they are stored and however; the operation stays, with all that people
// decide by, and its client's retry can still end it.
func TestSweepEmptiesWhatNobodyDecides(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		size      int
		sealed    bool
		retention time.Duration
		after     time.Duration
		giveUp    bool
		want      bool // it is emptied
	}{
		"before":                            {size: 10, after: 30*day - time.Hour, giveUp: true},
		"after":                             {size: 10, after: 30*day + 2*time.Hour, giveUp: true, want: true},
		"beside the record":                 {size: 20_000, after: 30*day + 2*time.Hour, giveUp: true, want: true},
		"sealed, and this sweep has no key": {size: 20_000, sealed: true, after: 30*day + 2*time.Hour, giveUp: true, want: true},
		"a key that is remembered longer":   {size: 10, retention: 60 * day, after: 30*day + 2*time.Hour, giveUp: true},
		"a sweep that only lists":           {size: 10, after: 30*day + 2*time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, func(o *dynamo.Options) {
				if tt.sealed {
					o.Seal = seal.New(static(t))
				}
			})
			key := tabletest.NewKey()
			var random strings.Builder // nothing that compresses away
			for random.Len() < tt.size {
				random.WriteString(tabletest.NewKey())
			}
			body := `"` + random.String() + `"`
			stuckWithRequest(t, tab, key, body, func(o *idem.Options) { o.Retention = tt.retention })
			before := tab.Only(t)
			if beside := before.Input.Overflow != nil; beside != (tt.size > 4096) {
				t.Fatalf("its request is stored beside it: %t", beside)
			}
			plain, err := dynamo.New(tab.Client, tab.Name) // the worker's, without keys
			if err != nil {
				t.Fatal(err)
			}
			sweep := stream.NewSweep(tab.Client, plain, in(tt.after), func(o *stream.SweepOptions) {
				o.PagesPerSecond = 1e6
				if tt.giveUp {
					o.MarkStuck = idem.New(plain, callertest.Anybody).MarkStuck
				}
			})
			rep, err := sweep.Run(t.Context())
			if err != nil || rep.ByReason[stream.ReasonStuck].Count != 1 || (rep.Emptied == 1) != tt.want {
				t.Errorf("the report is %+v, %v", rep, err)
			}
			after := tab.Only(t)
			if (after.Input == nil) != tt.want {
				t.Errorf("its request is %v", after.Input)
			}
			if after.State != store.Stuck || after.ID != before.ID || after.Fingerprint != before.Fingerprint || after.LastErr != before.LastErr ||
				!slices.EqualFunc(after.Phases, before.Phases, func(a, b store.Phase) bool { return a.Name == b.Name && string(a.Result) == string(b.Result) }) {
				t.Errorf("got %+v, want all but the request of %+v", after, before)
			}
			if !tt.want {
				return
			}
			for _, it := range tab.Items(t) {
				if pk := it["pk"].(*types.AttributeValueMemberS).Value; !strings.HasPrefix(pk, before.PK+"#") || it["b"] == nil {
					continue
				}
				// A sweep without keys doesn't know where sealed contents are. TTL has removed them by now.
				exp, err := strconv.ParseInt(it["exp_s"].(*types.AttributeValueMemberN).Value, 10, 64)
				if !tt.sealed || err != nil || exp > time.Now().Add(tt.after).Unix() {
					t.Errorf("a companion's contents are left until %d, %v", exp, err)
				}
			}
			engine := tab.Engine(resumable)
			if err := engine.Settle(t.Context(), after.PK, idem.Settlement{By: "jane"}); err != nil {
				t.Fatal(err)
			}
			res, err := engine.Do(t.Context(), tabletest.Post(key, body), func(ctx context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, phase(ctx)
			})
			if err != nil || res.Status != 201 {
				t.Errorf("its client's retry got %+v, %v", res, err)
			}
		})
	}
}

// Somebody decides between the sweep's read and its write: the decision stays, and the
// request that the operation needs with it.
func TestSweepDoesNotEmptyWhatIsDecidedMeanwhile(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	stuckWithRequest(t, tab, tabletest.NewKey(), "{}")
	seen := tab.Only(t)
	if err := tab.Engine().Settle(t.Context(), seen.PK, idem.Settlement{By: "jane"}); err != nil {
		t.Fatal(err)
	}
	next := state.Emptied(seen)
	state.Stamp(next, seen, "sweep")
	held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: seen, Next: next})
	if r := tab.Only(t); err != nil || held == nil || r.State != store.Open || r.Input == nil || len(r.Settled) != 1 {
		t.Errorf("got %+v after %+v, %v", r, held, err)
	}
}
