package stream

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// Wanted says which records [Search] looks for. Set fields all have to match.
type Wanted struct {
	ID    string                   // id of the operation
	Short string                   // short name of the record in logs and metrics
	Since time.Time                // the record's last attempt began, or its last write was, no earlier
	Match func(*store.Record) bool // a record of the others; called by several goroutines
}

// SearchOptions are the settings of [Search]; the zero value is the default.
type SearchOptions struct {
	// Segments is the number of parts that are scanned at once. Default: 8.
	Segments int
	// PagesPerSecond limits the scan: a page of 1 MB takes 128 read units. Default: 8.
	PagesPerSecond float64
	// Seen gets the number of items seen so far, after each page; one call at a time.
	Seen func(items int64)
}

// Search scans the table, and returns the partition keys of the records that match, in no
// order. It ends with the first match, unless all is set. Records that this program
// can't read match by ID and Short. Reads are eventually consistent.
//
// With an error, Search returns the matches until then.
func Search(ctx context.Context, api ScanAPI, s *dynamo.Store, w Wanted, all bool, optFns ...func(*SearchOptions)) ([]string, error) {
	opt := SearchOptions{Segments: 8, PagesPerSecond: 8}
	for _, fn := range optFns {
		fn(&opt)
	}
	opt.Segments, opt.PagesPerSecond = cmp.Or(opt.Segments, 8), cmp.Or(opt.PagesPerSecond, 8)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &search{api: api, in: w.input(s.Table().Name), w: w, all: all, opt: opt, stop: cancel}
	pace := time.NewTicker(time.Duration(float64(time.Second) / opt.PagesPerSecond))
	defer pace.Stop()
	f.pace = pace.C
	var wg sync.WaitGroup
	for segment := range opt.Segments {
		wg.Go(func() { f.segment(ctx, segment) })
	}
	wg.Wait()
	switch {
	case f.err != nil:
		return f.found, fmt.Errorf("dynamo: search: %w", f.err)
	case len(f.found) > 0 && !all:
		return f.found, nil
	}
	return f.found, context.Cause(ctx)
}

// search is a scan under way.
type search struct {
	api  ScanAPI
	in   dynamodb.ScanInput
	w    Wanted
	all  bool
	opt  SearchOptions
	pace <-chan time.Time
	stop func()

	mu    sync.Mutex
	first bool // a page was read without waiting
	seen  int64
	found []string
	err   error
}

// input has the service leave out what can't match. Companions have no st.
func (w Wanted) input(table string) dynamodb.ScanInput {
	var v item.Values
	filter, args := "attribute_exists(st)", item.Map{}
	if w.ID != "" {
		filter += " AND id = :id"
		args[":id"] = v.Str(w.ID)
	}
	if w.Short != "" {
		filter += " AND contains(pk, :short)"
		args[":short"] = v.Str("#" + w.Short)
	}
	if !w.Since.IsZero() {
		filter += " AND (run_ms >= :since OR (attribute_not_exists(run_ms) AND created_ms >= :since))" // without run_ms the first attempt is the last
		args[":since"] = v.Millis(w.Since)
	}
	in := dynamodb.ScanInput{TableName: &table, FilterExpression: &filter}
	if len(args) > 0 {
		in.ExpressionAttributeValues = args
	}
	if w.Match == nil {
		in.ProjectionExpression = aws.String(item.AttrPK)
	}
	return in
}

func (f *search) segment(ctx context.Context, segment int) {
	in := f.in
	in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(f.opt.Segments))
	for f.turn(ctx) {
		out, err := f.api.Scan(ctx, &in)
		if !f.take(ctx, out, err) || len(out.LastEvaluatedKey) == 0 {
			return
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// turn waits until another page may be read.
func (f *search) turn(ctx context.Context) bool {
	f.mu.Lock()
	first := !f.first
	f.first = true
	f.mu.Unlock()
	if first {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-f.pace:
		return true
	}
}

// take looks at a page. It returns false if the scan is over.
func (f *search) take(ctx context.Context, out *dynamodb.ScanOutput, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		if f.err == nil && ctx.Err() == nil {
			f.err = err
			f.stop()
		}
		return false
	}
	f.seen += int64(out.ScannedCount)
	for _, it := range out.Items {
		if f.matches(it) {
			f.found = append(f.found, item.PK(it))
		}
	}
	if f.opt.Seen != nil {
		f.opt.Seen(f.seen)
	}
	if len(f.found) > 0 && !f.all {
		f.stop()
		return false
	}
	return true
}

func (f *search) matches(it map[string]types.AttributeValue) bool {
	switch {
	case f.w.Short != "" && redact.Record(item.PK(it)) != f.w.Short: // a namespace may begin so
		return false
	case f.w.Match == nil:
		return true
	}
	r, err := item.Glance(it)
	return err == nil && f.w.Match(r)
}
