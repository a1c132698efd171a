package stream_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// Browse judges as List does, shows every record, and nothing personal.
func TestBrowse(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	crowd(t, tab)
	req := tabletest.Post(tabletest.NewKey(), `{"card":"secret-body"}`)
	if _, err := idem.New(tab.Store, callertest.Anybody).Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "secret", func(context.Context, *idem.Tx) (string, error) { return "secret-result", nil })
		return idem.Response{Status: 201, Body: []byte("secret-answer")}, err
	}); err != nil {
		t.Fatal(err)
	}
	later := in(2 * time.Hour)
	want := look(t, tab, later).Entries

	var got []stream.Entry
	var last stream.Browsed
	records := 0
	tab.Transport.Reset()
	err := tab.sweep(later, func(o *stream.SweepOptions) { o.PageSize = 2 }).Browse(t.Context(), func(page []stream.Glimpse, b stream.Browsed) {
		last = b
		for _, g := range page {
			got = append(got, g.Entries...)
			records++
			if (g.Record == nil) == (g.Err == nil) || g.PK == "" || g.Name == "" {
				t.Errorf("%+v has both or neither of record and error, or no name", g)
			}
			if text, err := json.Marshal(g); err != nil || strings.Contains(string(text), "secret-") {
				t.Errorf("shown: %s, %v", text, err)
			}
			if g.Record != nil {
				full, err := tab.Store.Load(t.Context(), g.PK)
				if err != nil {
					t.Fatal(err)
				}
				whole := tab.sweep(later).Glimpse(full).Record
				whole.Secret, whole.Calls, whole.Sent, whole.Settled, whole.Trace = "", nil, nil, nil, trace.Context{}
				if diff := gocmp.Diff(whole, g.Record); diff != "" {
					t.Errorf("browsed differs from loaded (-loaded +browsed):\n%s", diff)
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	order := func(a, b stream.Entry) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.PK, b.PK), cmp.Compare(a.Job, b.Job))
	}
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if diff := gocmp.Diff(want, got); diff != "" || len(want) < 7 {
		t.Errorf("%d listed; browsed (-listed +browsed):\n%s", len(want), diff)
	}
	if records != last.Scanned-1 || last.Pages < 5 { // one item is somebody else's
		t.Errorf("%d records, %+v", records, last)
	}
}

// A read that fails ends all goroutines, and its error is returned.
func TestBrowseFails(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	down := errors.New("down")
	err := stream.NewSweep(brokenScan{down}, tab.Store).Browse(t.Context(), func([]stream.Glimpse, stream.Browsed) { t.Error("a page") })
	if !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tab.sweep().Browse(ctx, func([]stream.Glimpse, stream.Browsed) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type brokenScan struct{ err error }

func (f brokenScan) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return nil, f.err
}
