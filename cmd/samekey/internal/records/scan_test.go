package records

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// paged is a table with this number of pages in each segment, each of two items.
type paged struct {
	pages int
	fails int // page of segment 1 that can't be read; 0: none

	mu    sync.Mutex
	calls int
	first []*dynamodb.ScanInput // first request of each segment
	items []map[string]types.AttributeValue
}

var errThrottled = errors.New("throttled")

func (p *paged) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	page := 1
	if in.ExclusiveStartKey == nil {
		asked := *in
		p.first = append(p.first, &asked)
	}
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
	out := &dynamodb.ScanOutput{ScannedCount: 2, Items: []map[string]types.AttributeValue{{"pk": text("a")}, {"pk": text("b")}}}
	if p.items != nil {
		out.Items = p.items
	}
	if page < p.pages {
		out.LastEvaluatedKey = map[string]types.AttributeValue{"pk": text(strconv.Itoa(page))}
	}
	return out, nil
}

// Scan sees every item of every segment, at the given rate.
func TestEachSeesAllAtItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, items, told := &paged{pages: 5}, 0, int64(0)
		began := time.Now()
		seen, err := Scan(t.Context(), api, ScanOptions{Table: "t", Segments: 4, PagesPerSecond: 2, Seen: func(n int64) { told = n }}, func(it Item) error {
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

// An incomplete scan is an error: of DynamoDB, of fn or of the context.
func TestEachTellsThatItIsNotWhole(t *testing.T) {
	t.Parallel()
	errStop := errors.New("stop")
	for name, tt := range map[string]struct {
		api  *paged
		fn   func(Item) error
		want error
	}{
		"a page that can't be read": {&paged{pages: 9, fails: 3}, func(Item) error { return nil }, errThrottled},
		"an error of fn":            {&paged{pages: 9}, func(Item) error { return errStop }, errStop},
		"the context's end":         {&paged{pages: 1e9}, func(Item) error { return nil }, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := Scan(ctx, tt.api, ScanOptions{Table: "t"}, tt.fn); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", name, err, tt.want)
			}
		})
	}
	api := &paged{pages: 9}
	if seen, err := Scan(t.Context(), api, ScanOptions{Table: "t", Pages: 1, Segments: 3, PagesPerSecond: 1e6}, func(Item) error { return nil }); err != nil || seen != 6 || api.calls != 3 {
		t.Errorf("a sample: %d seen, %d calls, %v", seen, api.calls, err)
	}
}

// A scan reads its segments in limited pages: without a limit, DynamoDB Local's time grows with
// the square of the table. A search asks only for matching items: for their keys, or whole.
func TestEachAsks(t *testing.T) {
	t.Parallel()
	since := time.UnixMilli(1_800_000_000_000)
	each := func(opt ScanOptions) func(context.Context, *paged) error {
		return func(ctx context.Context, p *paged) error {
			_, err := Scan(ctx, p, opt, func(Item) error { return nil })
			return err
		}
	}
	search := func(w wanted) func(context.Context, *paged) error {
		return func(ctx context.Context, p *paged) error {
			_, err := find(ctx, p, ScanOptions{Table: "t"}, w)
			return err
		}
	}
	const st = "attribute_exists(st)"
	for name, tt := range map[string]struct {
		do       func(context.Context, *paged) error
		segments int32
		want     dynamodb.ScanInput
		took     time.Duration
	}{
		"by default":     {each(ScanOptions{Table: "t"}), 4, dynamodb.ScanInput{}, 2 * time.Second},
		"what is open":   {each(ScanOptions{Table: "t", Segments: 2, PagesPerSecond: 1, OpenOnly: true}), 2, dynamodb.ScanInput{FilterExpression: aws.String("st <> :done"), ExpressionAttributeValues: map[string]types.AttributeValue{":done": text("done")}}, 10 * time.Second},
		"by its content": {search(wanted{Match: func(*store.Record) (is, known bool) { return false, true }}), 8, dynamodb.ScanInput{FilterExpression: aws.String(st)}, 5 * time.Second},
		"by its names": {search(wanted{ID: "OP", Short: "abcdefgh", Since: since}), 8, dynamodb.ScanInput{
			FilterExpression:     aws.String(st + " AND id = :id AND contains(pk, :short) AND (run_ms >= :since OR (attribute_not_exists(run_ms) AND created_ms >= :since))"),
			ProjectionExpression: aws.String("pk"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":id": text("OP"), ":short": text("#abcdefgh"), ":since": &types.AttributeValueMemberN{Value: "1800000000000"},
			},
		}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, began := &paged{pages: 5}, time.Now()
				if err := tt.do(t.Context(), p); err != nil {
					t.Error(err)
				}
				var want []*dynamodb.ScanInput
				for i := range tt.segments {
					one := tt.want
					one.TableName, one.Segment, one.TotalSegments, one.Limit = aws.String("t"), &i, &tt.segments, aws.Int32(2000)
					want = append(want, &one)
				}
				slices.SortFunc(p.first, func(a, b *dynamodb.ScanInput) int { return int(*a.Segment - *b.Segment) })
				if diff := cmp.Diff(want, p.first, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" || time.Since(began) != tt.took {
					t.Errorf("in %v (-want +got):\n%s", time.Since(began), diff)
				}
			})
		})
	}
}

// items returns an item of another table, an unreadable item, and a record.
func items() []map[string]types.AttributeValue {
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	return []map[string]types.AttributeValue{
		{"pk": number("1")},
		{"pk": text("bad"), "v": number("9"), "st": text("open")},
		{"pk": text("v1#n#a"), "v": number("1"), "st": text("open"), "owner": text("o"), "ver": number("1"), "lease_ms": number("0"), "fp": text("f"), "id": text("ID"), "created_ms": number("1"), "keep": text("open")},
	}
}

// Scan tells records, foreign items and unreadable items apart.
func TestEachDecodes(t *testing.T) {
	t.Parallel()
	var got []string
	if _, err := Scan(t.Context(), &paged{pages: 1, items: items()}, ScanOptions{Table: "t", Segments: 1, PagesPerSecond: 1e6}, func(it Item) error {
		id := ""
		if it.Record != nil {
			id = it.Record.ID
		}
		got = append(got, fmt.Sprintf("%q %q %t", it.PK, id, errors.Is(it.Err, store.ErrCorrupt)))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`"" "" false`, `"bad" "" true`, `"v1#n#a" "ID" false`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A search returns its matches and the number of records that it could
// not compare. A table that can't be read is an error.
func TestFindTells(t *testing.T) {
	t.Parallel()
	opt := ScanOptions{Table: "t", Segments: 1, PagesPerSecond: 1e6}
	api := &paged{pages: 9}
	if f, err := find(t.Context(), api, opt, wanted{ID: "OP"}); err != nil || len(f.Records) != 1 || api.calls != 1 {
		t.Errorf("%+v, %v, %d calls", f, err, api.calls)
	}
	for name, tt := range map[string]struct {
		is, known bool
		loaded    error
		want      Found
	}{
		"found":        {true, true, nil, Found{Seen: 2, Unreadable: 1, Records: []*store.Record{{ID: "ID"}}}},
		"not there":    {false, true, nil, Found{Seen: 2, Unreadable: 1}},
		"sealed":       {false, false, store.ErrSealed, Found{Seen: 2, Unreadable: 1, Sealed: 1}},
		"no such part": {false, false, nil, Found{Seen: 2, Unreadable: 1, Missing: 1}},
	} {
		f, err := find(t.Context(), &paged{pages: 1, items: items()}, opt, wanted{
			Match: func(*store.Record) (bool, bool) { return tt.is, tt.known },
			Load:  func(context.Context, string) (*store.Record, error) { return &store.Record{ID: "ID"}, tt.loaded },
		})
		if err != nil || f.Seen != tt.want.Seen || len(f.Records) != len(tt.want.Records) || f.Sealed != tt.want.Sealed || f.Missing != tt.want.Missing || f.Unreadable != tt.want.Unreadable {
			t.Errorf("%s: got %+v, %v, want %+v", name, f, err, tt.want)
		}
	}
	opt.Segments = 2
	if f, err := find(t.Context(), &paged{pages: 9, fails: 1}, opt, wanted{Match: func(*store.Record) (bool, bool) { return true, true }}); !errors.Is(err, errThrottled) {
		t.Errorf("got %+v, %v, although a segment can't be read", f, err)
	}
}
