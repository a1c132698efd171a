package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/cmd/samekey/internal/records"
)

// redriver hands out the parked jobs of many records.
type redriver struct {
	*decider
	all      bool
	removed  bool
	function string
	jobs     records.Parked // by the filters
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
	m := &redriver{}
	m.decider = newDecider(env, cmd, true, &decision{wish: func() records.Wish { return records.Wish{Do: records.Redrive, Jobs: names} }})
	fs := cmd.Flags()
	fs.BoolVar(&m.all, "all", false, "every parked job of the table")
	fs.StringVar(&m.jobs.Kind, "kind", "", "only jobs of this `KIND`")
	fs.StringVar(&m.jobs.Cause, "error", "", "only jobs whose last error has this `TEXT`")
	fs.DurationVar(&m.jobs.Older, "older", 0, "only jobs of records that have waited for longer than `TIME`")
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
		if m.all || m.jobs != (records.Parked{}) {
			if len(args) > 0 || m.find.key != "" || m.jobs.Older < 0 || m.c.by == "" {
				return wrongCallf("filters are for the whole table, without a record; --older is not negative, and --by or USER says who decides")
			}
			return m.run(cmd.Context())
		}
		return run(cmd, args)
	}
	return exitCodes(cmd, map[int]string{
		exitDone:   "done, or shown only with --dry-run",
		exitFailed: "failed, not confirmed, or refused because the record has been written since; of many records or FILEs, the same command tries the rest again",
		exitFound:  "there is no such record, or no parked job matches",
	})
}

func newCancel(env environment) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use: "cancel {REF | --key KEY --scope SCOPE} [JOB...] [FLAGS]", Short: "Cancel later jobs that no drain has begun to deliver",
		Long: `Removes jobs of a record that wait for their time: all, or those named by their id or by
PHASE.INDEX. A job that a drain has begun to deliver stays: it may have arrived. The record
decides, and no clock, so an overdue job can be cancelled while the worker is off.`,
	}
	newDecider(env, cmd, true, &decision{wish: func() records.Wish { return records.Wish{Do: records.Cancel, Jobs: names} }})
	byName(cmd, &names)
	return changeExits(cmd)
}

// byName has a command take the names of jobs behind the record's.
func byName(cmd *cobra.Command, names *[]string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		keyed := cmd.Flags().Changed("key")
		if *names = args; !keyed && len(args) > 0 {
			if *names = args[1:]; len(*names) == 0 && records.IsJob(args[0]) {
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
	m.jobs.Namespace, m.jobs.Only = m.op.namespace, m.op.limited()
	found, unread, err := m.jobs.Found(ctx, m.op.client, m.op.store, m.env.now())
	if err != nil {
		return err
	}
	kinds := make(map[string]int)
	for _, rec := range found {
		for _, name := range m.jobs.Of(rec) {
			kinds[rec.Jobs[name].Kind]++
		}
	}
	if len(found) == 0 {
		if err := m.op.ours(ctx); err != nil {
			return err
		}
		if len(unread) > 0 {
			return errors.Join(unread...)
		}
		return exitWith(exitFound, errors.New("no parked job matches"))
	}
	out := redriven{Records: len(found), Kinds: kinds}
	var says []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		out.Jobs += kinds[kind]
		says = append(says, fmt.Sprintf("%s %d", plain.Line(kind), kinds[kind]))
	}
	yes, err := m.c.agreed(m.env, m.op.place, fmt.Sprintf("Jobs that are handed out again: %d, of %d records (%s). Their counts of failures begin anew.",
		out.Jobs, out.Records, strings.Join(says, ", ")))
	if err != nil {
		return err
	}
	if yes {
		out.Jobs, err = m.jobs.Redrive(ctx, m.op.store, m.c.by, found)
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
