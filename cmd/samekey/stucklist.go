package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/samekey/samekey/dynamo/stream"
)

func (op *stuckDesk) list(ctx context.Context) error {
	if op.opt.max < 0 || op.opt.pages < 0 || op.opt.grace < 0 {
		return errors.New("-max, -pages and -grace are not negative")
	}
	report, err := stream.NewSweep(op.client, op.store, func(o *stream.SweepOptions) {
		o.MaxEntries, o.PagesPerSecond, o.Grace = op.opt.max, op.opt.pages, op.opt.grace
		o.Logger = slog.New(slog.DiscardHandler) // what it would say is printed
	}).List(ctx)
	if op.opt.json {
		return cmp.Or(op.encode(report), err)
	}
	if err == nil && !report.Complete {
		err = cmp.Or(ctx.Err(), errors.New("the table was not seen to its end"))
	}
	op.print(report, err == nil, time.Now())
	return err
}

// print prints a report as a table: what it is, where, and what went wrong. Only of
// the whole table can it say that nothing waits.
func (op *stuckDesk) print(report *stream.Report, whole bool, now time.Time) {
	w := tabwriter.NewWriter(op.env.stdout, 0, 0, 2, ' ', 0)
	if len(report.Entries) > 0 {
		fmt.Fprintln(w, "WHY\tAGE\tTRIES\tROUTE\tAT\tPK\tERROR")
	}
	for _, e := range report.Entries {
		age, at := "", e.Phase
		if !e.Run.IsZero() {
			age = e.Age(now).Round(time.Second).String()
		}
		if e.Job != "" {
			at = "job " + e.ID + "." + e.Job + " " + e.Kind
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", e.Why, age, e.Tries, printable(e.Route), printable(at), e.PK, printable(e.LastErr))
	}
	_ = w.Flush() // to the standard output, or to a buffer of a test
	for _, why := range slices.Sorted(maps.Keys(report.ByWhy)) {
		fmt.Fprintf(op.env.stderr, "%s: %d\n", why, report.ByWhy[why].Count)
	}
	verdict := ""
	switch {
	case !whole:
		verdict = "the list is incomplete; "
	case len(report.ByWhy) == 0:
		verdict = "nothing waits for people; "
	}
	fmt.Fprintf(op.env.stderr, "%s%d items seen\n", verdict, report.Scanned)
}
