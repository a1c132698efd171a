package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/operate"
	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// redriver hands out the parked jobs of many records.
type redriver struct {
	*decider
	all         bool
	removed     bool
	function    string
	kind, cause string
	older       time.Duration

	kinds map[string]int
}

// redriven is what it prints with --json.
type redriven struct {
	Records int            `json:"records"`
	Jobs    int            `json:"jobs"` // that are handed out, or would be
	Kinds   map[string]int `json:"kinds"`
}

func newRedrive(env environment) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use: "redrive {REF | --key KEY --scope SCOPE | --all | --kind KIND | --error TEXT | --older TIME} [JOB...] [FLAGS], or redrive --removed --function WORKER FILE...", Short: "Deliver parked jobs again",
		Long: `Hands parked jobs of a record out again: all, or those named by their id or by PHASE.INDEX.
Without a record it hands out those of the whole table that all its filters match, or with
--namespace as a flag, those of the namespace.
Remove the cause of their failures first.

With --removed it reads objects of the stack's FailedBucket, FILEs or folders of them, which
Lambda wrote for batches of the stream that it gave up. What DynamoDB has removed from the
table, and only that, is handed to the worker again: the worker delivers the jobs, and
reports what was unfinished. The rest is in the table, where the sweep finds it. Jobs that
were delivered are delivered again, with the same ids.`,
	}
	m := &redriver{kinds: make(map[string]int)}
	m.decider = newDecider(env, cmd, true, &decision{wish: func() operate.Wish { return operate.Wish{Do: operate.Redrive, Jobs: names} }})
	fs := cmd.Flags()
	fs.BoolVar(&m.all, "all", false, "every parked job of the table")
	fs.StringVar(&m.kind, "kind", "", "only jobs of this `KIND`")
	fs.StringVar(&m.cause, "error", "", "only jobs whose last error has this `TEXT`")
	fs.DurationVar(&m.older, "older", 0, "only jobs of records that have waited for longer than `TIME`")
	cmd.Args = takes(0, 10_000)
	fs.BoolVar(&m.removed, "removed", false, "hand what the worker gave up, and the table no longer has, to the worker again")
	fs.StringVar(&m.function, "function", "", "with --removed: the `WORKER`'s name or ARN: WorkerArn of the stack's outputs")
	byName(cmd, &names)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case m.removed && (m.function == "" || len(args) == 0):
			return wrongCallf("--removed needs --function WORKER and FILEs")
		case m.removed:
			if err := m.op.account.open(cmd.Context()); err != nil {
				return err
			}
			return env.resend(cmd.Context(), m.op.sdk, m.function, args)
		}
		if m.all || m.kind != "" || m.cause != "" || m.older != 0 {
			if len(args) > 0 || m.find.key != "" || m.older < 0 || m.c.by == "" {
				return wrongCallf("filters are for the whole table, without a record; --older is not negative, and --by or USER says who decides")
			}
			return m.run(cmd.Context())
		}
		return run(cmd, args)
	}
	return changeExits(cmd)
}

func newCancel(env environment) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use: "cancel {REF | --key KEY --scope SCOPE} [JOB...] [FLAGS]", Short: "Cancel later jobs that no drain has begun to deliver",
		Long: `Removes jobs of a record that wait for their time: all, or those named by their id or by
PHASE.INDEX. A job that a drain has begun to deliver stays: it may have arrived. The record
decides, and no clock, so an overdue job can be cancelled while the worker is off.`,
	}
	newDecider(env, cmd, true, &decision{wish: func() operate.Wish { return operate.Wish{Do: operate.Cancel, Jobs: names} }})
	byName(cmd, &names)
	return changeExits(cmd)
}

// byName has a command take the names of jobs behind the record's.
func byName(cmd *cobra.Command, names *[]string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		keyed := cmd.Flags().Changed("key")
		if *names = args; !keyed && len(args) > 0 {
			if *names = args[1:]; len(*names) == 0 && isJob.MatchString(args[0]) {
				*names = args[:1]
			}
		}
		return run(cmd, args)
	}
}

func (m *redriver) run(ctx context.Context) error {
	if err := m.op.open(ctx); err != nil {
		return err
	}
	var records []*store.Record
	var unread []error // of records that hold up none of the others
	for e, err := range stream.NewWaiting(m.op.client, m.op.store).All(ctx) {
		if err != nil {
			return err
		}
		if e.Reason == stream.ReasonUnreadable || m.env.now().Sub(e.Since) < m.older || m.op.limited() && state.Namespace(e.PK) != m.op.namespace {
			continue
		}
		rec, err := m.op.readable(m.op.store.Load(ctx, e.PK))
		if errors.Is(err, store.ErrCorrupt) {
			unread = append(unread, fmt.Errorf("record %s is left: %w", plain.Line(e.PK), err))
			continue
		}
		if err != nil {
			return err
		}
		if names := m.matching(rec); len(names) > 0 {
			records = append(records, rec)
			for _, name := range names {
				m.kinds[rec.Jobs[name].Kind]++
			}
		}
	}
	if len(records) == 0 {
		if err := m.op.ours(ctx); err != nil {
			return err
		}
		if len(unread) > 0 {
			return errors.Join(unread...)
		}
		return exitWith(exitFound, errors.New("no parked job matches"))
	}
	out := redriven{Records: len(records), Kinds: m.kinds}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(m.kinds)) {
		out.Jobs += m.kinds[kind]
		kinds = append(kinds, fmt.Sprintf("%s %d", plain.Line(kind), m.kinds[kind]))
	}
	yes, err := m.c.agreed(m.env, m.op.place, fmt.Sprintf("Jobs that are handed out again: %d, of %d records (%s). Their counts of failures begin anew.",
		out.Jobs, out.Records, strings.Join(kinds, ", ")))
	if err != nil {
		return err
	}
	if yes {
		out.Jobs, err = m.redrive(ctx, records)
	}
	err = errors.Join(append(unread, err)...)
	switch {
	case m.op.json:
		return errors.Join(m.env.printJSON(out), err)
	case yes:
		return errors.Join(m.env.say("%d handed out again: the drain sees them in the stream", out.Jobs), err)
	}
	return err
}

func (m *redriver) redrive(ctx context.Context, records []*store.Record) (n int, err error) {
	for _, rec := range records {
		one, rerr := stream.Redrive(ctx, m.op.store, rec.PK, rec.ID, m.c.by, m.matching(rec)...)
		n += one
		if rerr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", plain.Line(rec.PK), rerr))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return n, err
}

// matching are the names of the parked jobs that the filters match; none of a record
// that is gone.
func (m *redriver) matching(rec *store.Record) (names []string) {
	if rec == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(rec.Jobs)) {
		j := rec.Jobs[name]
		if j.Failed != "" && (m.kind == "" || j.Kind == m.kind) && strings.Contains(j.Failed, m.cause) {
			names = append(names, name)
		}
	}
	return names
}
