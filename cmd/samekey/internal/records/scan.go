package records

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/item"
)

// ScanOptions are the settings of a scan. Table is required.
type ScanOptions struct {
	Table string
	// OpenOnly leaves out done records. DynamoDB still reads them.
	OpenOnly bool
	// Segments is how many segments are read at once. Default 4.
	Segments int
	// PagesPerSecond bounds the rate of all segments together; a page takes up to 128
	// read units. Default 10.
	PagesPerSecond float64
	// Pages is the maximum number of pages to read from each segment. 0: all.
	Pages int
	// Seen is called after each page, with the number of items read so far. Its calls
	// don't overlap. May be nil.
	Seen func(items int64)

	wanted *wanted // set by find
}

// Item is an item of the table. Record is nil if the item isn't a record. If the item is
// a record that can't be read, Record is nil and Err is the reason.
type Item struct {
	Record *store.Record
	Err    error
	PK     string
	Size   int // bytes
}

// Scan calls fn for each item, and returns the number of items read. The calls of fn don't
// overlap. The scan ends early if ctx ends, if fn returns an error, or if a request to
// DynamoDB still fails after the client's retries.
func Scan(ctx context.Context, api stream.ScanAPI, opt ScanOptions, fn func(Item) error) (seen int64, _ error) {
	if opt.Segments == 0 {
		opt.Segments = 4
	}
	if opt.PagesPerSecond == 0 {
		opt.PagesPerSecond = 10
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pace := time.NewTicker(max(time.Nanosecond, time.Duration(float64(time.Second)/opt.PagesPerSecond)))
	defer pace.Stop()
	var mu sync.Mutex // guards seen and the calls of fn
	var wg sync.WaitGroup
	for segment := range opt.Segments {
		wg.Go(func() {
			in := input(opt, segment)
			for page := 0; opt.Pages == 0 || page < opt.Pages; page++ {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
				}
				out, err := api.Scan(ctx, in)
				if err != nil {
					cancel(fmt.Errorf("scan of segment %d of %d: %w", segment, opt.Segments, err))
					return
				}
				mu.Lock()
				seen += int64(out.ScannedCount)
				err = decodeEach(out.Items, fn)
				if opt.Seen != nil {
					opt.Seen(seen)
				}
				mu.Unlock()
				if err != nil {
					cancel(err)
					return
				}
				if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	return seen, context.Cause(ctx)
}

func decodeEach(items []map[string]types.AttributeValue, fn func(Item) error) error {
	for _, it := range items {
		i := Item{Size: itemsize.Of(it)}
		if pk, ok := it["pk"].(*types.AttributeValueMemberS); ok {
			i.PK = pk.Value
		}
		i.Record, i.Err = item.Read(it)
		if err := fn(i); err != nil {
			return err
		}
	}
	return nil
}

// pageItems limits the number of items in a page. DynamoDB Local needs the limit:
// without it, DynamoDB Local reads the rest of the segment for each page. DynamoDB
// doesn't need the limit, because it ends a page of records earlier, at 1 MB.
const pageItems = 2000

func input(opt ScanOptions, segment int) *dynamodb.ScanInput {
	in := &dynamodb.ScanInput{
		TableName: &opt.Table, Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(opt.Segments)), Limit: aws.Int32(pageItems),
	}
	if opt.OpenOnly {
		in.FilterExpression = aws.String("st <> :done") // also leaves out items without st
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":done": &types.AttributeValueMemberS{Value: string(store.Done)}}
	}
	if opt.wanted != nil {
		opt.wanted.filter(in)
	}
	return in
}
