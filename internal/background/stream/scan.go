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

// scanner.each scans all segments concurrently, each segment from its place in p. It
// calls fn with the relevant items of every page. The result found is what fn has found
// in the page. If fn has no time for the page, seen is false. After such a page, or a
// page that can't be read, the segment's place stays before the page.
//
// If ctx has ended, or the wall clock has reached end, the scan ends early, without an
// error. Reads are eventually consistent and use no write capacity, so they don't
// affect claims.
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
		// The filter lets kept records, open records and the items of the index
		// through. It drops other finished records, which are most of the table.
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
