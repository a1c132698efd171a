package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

// ScanAPI is the part of *dynamodb.Client that a [Sweep] uses.
type ScanAPI interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

var _ ScanAPI = (*dynamodb.Client)(nil)

// scanner reads a table at a limited rate, all segments concurrently.
type scanner struct {
	api       ScanAPI
	table     string
	segments  int
	pageSize  int
	perSecond float64

	mu      sync.Mutex
	pages   int
	scanned int
}

// scanner.each scans all segments concurrently, each segment from the place that pass p has
// reached. It calls fn with the relevant items of every page. Reads are eventually consistent and
// use no write capacity, so claims are not affected. If ctx ends, or the time end has passed by the
// wall clock, the scan ends early, without an error. If fn has no time for a page, it returns
// false. In this case, or if a page can't be read, the segment's place stays before the page. The
// result named found is what fn has found in the page.
func (s *scanner) each(ctx context.Context, end time.Time, p *pass, fn func([]item.Map) (found tally, seen bool)) error {
	pace := time.NewTicker(time.Duration(float64(time.Second) / s.perSecond))
	first := make(chan struct{}, 1)
	first <- struct{}{}
	scanning, cancel := ctx, context.CancelFunc(func() {})
	if !end.IsZero() {
		scanning, cancel = context.WithDeadline(ctx, end)
	}
	defer cancel()
	errs := make([]error, s.segments)
	var wg sync.WaitGroup
	for segment := range s.segments {
		wg.Go(func() {
			for to := p.place(segment); !to.done; {
				select {
				case <-scanning.Done():
				case <-first:
				case <-pace.C:
				}
				if out(ctx, end) {
					return
				}
				got, err := s.api.Scan(scanning, s.input(segment, to.after))
				if err != nil {
					if !out(ctx, end) {
						errs[segment] = fmt.Errorf("dynamo: scan of segment %d of %d: %w", segment, s.segments, err)
					}
					return
				}
				s.mu.Lock()
				s.pages++
				s.scanned += int(got.ScannedCount)
				s.mu.Unlock()
				found, seen := fn(got.Items)
				if !seen {
					return
				}
				last, more := got.LastEvaluatedKey[item.AttrPK].(*types.AttributeValueMemberS)
				if to.done = !more; more {
					to.after = last.Value
				}
				to.seen += int64(got.ScannedCount)
				to.found = to.found.with(found)
				if !p.moved(ctx, segment, to) {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *scanner) input(segment int, after string) *dynamodb.ScanInput {
	var v item.Values
	in := &dynamodb.ScanInput{
		TableName: &s.table,
		// The filter lets through kept records, open records and the items of the index. Nearly all
		// other records are finished, and needn't be sent.
		FilterExpression:          aws.String("attribute_exists(keep) OR st = :open OR attribute_exists(waits)"),
		ExpressionAttributeValues: item.Map{":open": v.Str(string(store.Open))},
		Segment:                   aws.Int32(int32(segment)),
		TotalSegments:             aws.Int32(int32(s.segments)),
		Limit:                     aws.Int32(int32(s.pageSize)),
	}
	if after != "" {
		in.ExclusiveStartKey = item.Key(after)
	}
	return in
}
