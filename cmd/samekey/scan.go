package main

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
)

// scan holds the flags of commands that scan the table.
type scan struct {
	opt      records.ScanOptions
	progress *progress
}

func newScan(env environment, fs *pflag.FlagSet) *scan {
	s := &scan{progress: newProgress(env, fs)}
	fs.IntVar(&s.opt.Segments, "segments", 4, "scan: number of parts of the table to read at the same time")
	fs.Float64Var(&s.opt.PagesPerSecond, "pages", 10, "scan: number of 1-MB pages to read per second; each page costs 128 read units")
	return s
}

func (s *scan) check() error {
	if s.opt.Segments < 1 || s.opt.Segments > 1000 || s.opt.PagesPerSecond <= 0 {
		return wrongCallf("--segments must be 1 to 1000, and --pages above 0")
	}
	return nil
}

// scan.begin prepares a scan of the operator's table, and begins to show progress. The
// caller must call progress.end.
func (s *scan) begin(op *operator, about int64) {
	s.opt.Table = op.table
	s.progress.start("items seen")
	s.opt.Seen = func(n int64) { s.progress.at(n, about) }
}

// scan.each calls fn for each item, shows the progress, and returns the number of items.
func (s *scan) each(ctx context.Context, op *operator, about int64, fn func(records.Item) error) (int64, error) {
	s.begin(op, about)
	defer s.progress.end()
	return records.Scan(ctx, op.client, s.opt, fn)
}

// scan.of scans the table, and returns all records of the caller that c describes.
func (s *scan) of(ctx context.Context, op *operator, about int64, c records.Customer) (*records.Found, error) {
	s.begin(op, about)
	defer s.progress.end()
	return records.Search(ctx, op.client, op.store, s.opt, c, time.Time{})
}

// operator.size returns how many items and bytes the table has. The numbers may be six hours
// old. They are 0 if unknown.
func (op *operator) size() (items, bytes int64) {
	if op.about == nil {
		return 0, 0
	}
	return aws.ToInt64(op.about.ItemCount), aws.ToInt64(op.about.TableSizeBytes)
}
