package stream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// Glimpse is an item of the table as [Sweep.Browse] shows it. A Glimpse has no bodies,
// headers, results of phases or arguments of jobs, since these may be personal.
type Glimpse struct {
	PK     string
	Name   string        // the record's short name in logs
	Record *store.Record // nil if Err is set
	// Entries are the record's lines in the list for operators.
	Entries []Entry
	Err     error // why the record can't be read
}

// Browsed is the progress of [Sweep.Browse].
type Browsed struct {
	Pages, Scanned int     // so far
	Units          float64 // read units, if the database counts them
}

// Browse scans the whole table in parallel, one goroutine for each of [SweepOptions.Segments]. It
// calls the function see with the records of each page, one call at a time. Companions and foreign
// items are left out. Browse changes nothing and doesn't count as a pass of the sweep. If ctx ends
// or a read fails, Browse stops and returns the error.
func (s *Sweep) Browse(ctx context.Context, see func([]Glimpse, Browsed)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pace := time.NewTicker(time.Duration(float64(time.Second) / s.opt.PagesPerSecond))
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen Browsed
	)
	for segment := range s.opt.Segments {
		wg.Go(func() {
			in := s.browseInput(segment)
			for more := true; more; more = len(in.ExclusiveStartKey) > 0 {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
				}
				out, err := s.api.Scan(ctx, in)
				if err != nil {
					cancel(fmt.Errorf("dynamo: scan of segment %d of %d: %w", segment, s.opt.Segments, err))
					return
				}
				in.ExclusiveStartKey = out.LastEvaluatedKey
				glimpses := s.glimpses(out.Items)
				mu.Lock()
				seen.Pages, seen.Scanned = seen.Pages+1, seen.Scanned+int(out.ScannedCount)
				if c := out.ConsumedCapacity; c != nil {
					seen.Units += aws.ToFloat64(c.CapacityUnits)
				}
				see(glimpses, seen)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (s *Sweep) browseInput(segment int) *dynamodb.ScanInput {
	// Every part of an attribute's path has a placeholder, since DynamoDB reserves some of the
	// names.
	names := make(map[string]string)
	listed := item.Listed()
	paths := make([]string, 0, len(listed))
	for _, path := range listed {
		parts := strings.Split(path, ".")
		for i, part := range parts {
			parts[i] = "#" + part
			names[parts[i]] = part
		}
		paths = append(paths, strings.Join(parts, "."))
	}
	return &dynamodb.ScanInput{
		TableName: &s.jobs.table.Name, ProjectionExpression: aws.String(strings.Join(paths, ", ")), ExpressionAttributeNames: names,
		Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(s.opt.Segments)), Limit: aws.Int32(int32(s.opt.PageSize)),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
}

func (s *Sweep) glimpses(items []item.Map) []Glimpse {
	out := make([]Glimpse, 0, len(items))
	for _, it := range items {
		rec, why, err := readItem(it)
		switch why {
		case "":
			out = append(out, s.Glimpse(rec))
		case SkipUnreadable:
			pk := item.PK(it)
			out = append(out, Glimpse{PK: pk, Name: redact.Record(pk), Err: err, Entries: []Entry{{
				Reason: state.ReasonUnreadable, PK: pk, Record: redact.Record(pk), LastErr: reason(err),
			}}})
		default: // no record
		}
	}
	return out
}

// Glimpse returns what Browse shows of the record r, which must not be nil.
func (s *Sweep) Glimpse(r *store.Record) Glimpse {
	var f tasks
	s.examine(&f, r, s.opt.Now())
	bare := r.Clone()
	bare.Seal = nil
	for i := range bare.Phases {
		bare.Phases[i].Result = nil
	}
	for name, job := range bare.Jobs {
		job.Args = nil
		bare.Jobs[name] = job
	}
	if bare.Input != nil {
		bare.Input = &store.Input{Method: bare.Input.Method}
	}
	if bare.Response != nil {
		bare.Response = &store.Response{Status: bare.Response.Status}
	}
	return Glimpse{PK: r.PK, Name: redact.Record(r.PK), Record: bare, Entries: f.entries}
}
