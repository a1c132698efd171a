package main

import (
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/dynamo/stream"
)

func newSweep(env environment) *cobra.Command {
	var pages float64
	var budget time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "sweep [FLAGS]",
		Short: "Look at the whole table now, as the worker's sweep does",
		Long: `Reads the whole table, lets finished records go whose jobs are delivered, and brings the
index of what waits for people up to date. Late jobs and abandoned operations are
counted: the worker, which has the sinks and the queue, ends them. A pass that doesn't
end goes on with the next run, here or in the worker.`,
		Args: takes(0, 0),
	}
	fs := cmd.Flags()
	op := newOperator(env, fs)
	progress := newProgress(env, fs)
	fs.Float64Var(&pages, "pages", 4, "pages a second; a page of 500 records of 1 KB takes 64 read units")
	fs.DurationVar(&budget, "budget", 0, "end after this `TIME`; the next run goes on")
	fs.BoolVar(&dryRun, "dry-run", false, "read only, from the beginning")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		if pages <= 0 || budget < 0 {
			return wrongCallf("--pages is above 0, --budget not negative")
		}
		if err := op.open(ctx); err != nil {
			return err
		}
		if err := op.ours(ctx); err != nil { // before it writes its place into the table
			return err
		}
		total := op.tellScan(pages)
		progress.start("items seen")
		api := &counted{ScanAPI: op.client, seen: func(n int64) { progress.at(n, total) }}
		s := stream.NewSweep(api, op.store, func(o *stream.SweepOptions) {
			o.PagesPerSecond, o.Budget, o.Now, o.Logger = pages, budget, env.now, slog.New(slog.DiscardHandler)
		})
		run := s.Run
		if dryRun {
			run = s.List
		}
		rep, err := run(ctx)
		progress.end()
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case op.json:
			err = errors.Join(err, env.printJSON(rep))
		case err == nil:
			err = env.say("%d items seen, %d records let go; the pass is complete: %t", rep.Scanned, rep.LetGo, rep.Complete)
			l := &lister{op: op, max: len(rep.Entries)}
			for _, e := range rep.Entries {
				l.fold(e)
			}
			list := &listed{From: "scan", Complete: rep.Complete, Scanned: rep.Scanned, ByReason: rep.ByReason, Entries: rep.Entries}
			err = errors.Join(err, l.print(list))
		}
		return err
	}
	return exitCodes(cmd, map[int]string{exitDone: "done, or the time was up: the next run goes on"})
}
