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

// redriver redrives the parked jobs of many records.
type redriver struct {
	*decider
	all      bool
	removed  bool
	function string
	jobs     records.Parked // the jobs that the filters select
}

// redriven is the JSON output of redrive.
type redriven struct {
	Records int            `json:"records"`
	Jobs    int            `json:"jobs"` // number of redriven jobs; with --dry-run, number of jobs to redrive
	Kinds   map[string]int `json:"kinds"`
}

func newRedrive(env environment) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use: "redrive {REF | --key KEY --scope SCOPE | --all | --kind KIND | --error TEXT | --older TIME} [JOB...] [FLAGS], or redrive --removed --function WORKER FILE...", Short: "Deliver parked jobs again",
		Long: `Delivers parked jobs again. Mend the cause of their failures first. For one
record, redrive delivers all its parked jobs, or only those that you name: each JOB is a
job's id or PHASE.INDEX. If you name no record, redrive delivers the table's parked jobs
that match every given filter (--kind, --error, --older), or with --all every parked job. The
flag --namespace limits the redrive to the jobs of one namespace.

With --removed, redrive reads stream batches that Lambda gave up. Each FILE is an object that
you downloaded from the stack's FailedBucket, or a folder of such objects. From these batches,
redrive sends the worker only the records that TTL has removed from the table. The sweep
handles the records that are still in the table. If a job of a removed record was already
delivered, the worker delivers it again, with the same id.`,
	}
	m := &redriver{}
	m.decider = newDecider(env, cmd, true, &decision{wish: func() records.Wish { return records.Wish{Do: records.Redrive, Jobs: names} }})
	fs := cmd.Flags()
	fs.BoolVar(&m.all, "all", false, "redrive every parked job of the table")
	fs.StringVar(&m.jobs.Kind, "kind", "", "redrive only jobs of this `KIND`")
	fs.StringVar(&m.jobs.Cause, "error", "", "redrive only jobs whose last error contains `TEXT`")
	fs.DurationVar(&m.jobs.Older, "older", 0, "redrive only jobs of records that have waited for a person longer than `TIME`")
	cmd.Args = takes(0, 10_000)
	fs.BoolVar(&m.removed, "removed", false, "send the worker the records in each FILE that TTL has removed from the table")
	fs.StringVar(&m.function, "function", "", "with --removed: name or ARN of the `WORKER` (the stack's output WorkerArn)")
	byName(cmd, &names)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case m.removed && (m.function == "" || len(args) == 0):
			return wrongCallf("--removed needs --function WORKER and at least one FILE")
		case m.removed:
			if err := m.op.account.open(cmd.Context()); err != nil {
				return err
			}
			return env.resend(cmd.Context(), m.op.sdk, m.function, args)
		}
		if m.all || m.jobs != (records.Parked{}) {
			if len(args) > 0 || m.find.key != "" || m.jobs.Older < 0 || m.c.by == "" {
				return wrongCallf("with --all or a filter, set --by or USER, name no record, and give no negative --older")
			}
			return m.run(cmd.Context())
		}
		return run(cmd, args)
	}
	return exitCodes(cmd, map[int]string{
		exitDone:   "done; with --dry-run: the change was shown",
		exitFailed: "failed, not confirmed, or refused because a record has changed; run the command again for the jobs that are left",
		exitFound:  "no record or no parked job matches",
	})
}

func newCancel(env environment) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use: "cancel {REF | --key KEY --scope SCOPE} [JOB...] [FLAGS]", Short: "Cancel later jobs whose delivery has not begun",
		Long: `Removes all later jobs of a record, or only those that you name: each JOB is a job's id or
PHASE.INDEX. A job whose delivery has begun stays, since it may have arrived. An overdue job
whose delivery has not begun can still be cancelled.`,
	}
	newDecider(env, cmd, true, &decision{wish: func() records.Wish { return records.Wish{Do: records.Cancel, Jobs: names} }})
	byName(cmd, &names)
	return changeExits(cmd)
}

// byName makes a command accept names of jobs after the argument for the record. With
// --key, all arguments are names of jobs. Without --key, a job's id as the only argument
// names both the record and the job.
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
	yes, err := m.c.agreed(m.env, m.op.place, fmt.Sprintf("Jobs to redrive: %d, of %d records (%s). Their failures are counted from zero again.",
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
	case yes && out.Jobs > 0:
		return errors.Join(m.env.say("jobs redriven: %d; the drain delivers them from the table's stream", out.Jobs), err)
	}
	return err
}
