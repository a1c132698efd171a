package tablescan_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/cli/tablescan"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// paged is a table with so many pages of two items in each segment.
type paged struct {
	pages int
	fails int // page of segment 1 that can't be read; 0 = none

	mu    sync.Mutex
	calls int
}

var errThrottled = errors.New("throttled")

func (p *paged) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	page := 1
	if last, ok := in.ExclusiveStartKey["pk"].(*types.AttributeValueMemberS); ok {
		n, err := strconv.Atoi(last.Value)
		if err != nil {
			return nil, err
		}
		page = n + 1
	}
	if p.fails == page && aws.ToInt32(in.Segment) == 1 {
		return nil, errThrottled
	}
	if n := aws.ToInt32(in.Limit); n < 1000 {
		return nil, fmt.Errorf("a page has a limit of %d items", n) // without one DynamoDB Local takes a time by the table's square
	}
	out := &dynamodb.ScanOutput{ScannedCount: 2, Items: []map[string]types.AttributeValue{{"pk": text("a")}, {"pk": text("b")}}}
	if page < p.pages {
		out.LastEvaluatedKey = map[string]types.AttributeValue{"pk": text(strconv.Itoa(page))}
	}
	return out, nil
}

// Each sees every item of every segment, at the given rate.
func TestEachSeesAllAtItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, items, told := &paged{pages: 5}, 0, int64(0)
		began := time.Now()
		seen, err := tablescan.Each(t.Context(), api, tablescan.Options{Table: "t", Segments: 4, PagesPerSecond: 2, Seen: func(n int64) { told = n }}, func(it tablescan.Item) error {
			items++
			if it.Record != nil || it.Err != nil || it.PK == "" || it.Size != 3 {
				t.Errorf("item %+v", it)
			}
			return nil
		})
		if took := time.Since(began); err != nil || seen != 40 || items != 40 || told != 40 || api.calls != 20 || took != 10*time.Second {
			t.Errorf("%d seen, %d items, %d told, %d calls in %v, %v", seen, items, told, api.calls, took, err)
		}
	})
}

// A scan that isn't whole is an error: by DynamoDB, by fn, by the context.
func TestEachTellsThatItIsNotWhole(t *testing.T) {
	t.Parallel()
	errStop := errors.New("stop")
	for name, tt := range map[string]struct {
		api  *paged
		fn   func(tablescan.Item) error
		want error
	}{
		"a page that can't be read": {&paged{pages: 9, fails: 3}, func(tablescan.Item) error { return nil }, errThrottled},
		"an error of fn":            {&paged{pages: 9}, func(tablescan.Item) error { return errStop }, errStop},
		"the context's end":         {&paged{pages: 1e9}, func(tablescan.Item) error { return nil }, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := tablescan.Each(ctx, tt.api, tablescan.Options{Table: "t"}, tt.fn); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", name, err, tt.want)
			}
		})
	}
	api := &paged{pages: 9}
	if seen, err := tablescan.Each(t.Context(), api, tablescan.Options{Table: "t", Pages: 1, Segments: 3, PagesPerSecond: 1e6}, func(tablescan.Item) error { return nil }); err != nil || seen != 6 || api.calls != 3 {
		t.Errorf("a sample: %d seen, %d calls, %v", seen, api.calls, err)
	}
}
