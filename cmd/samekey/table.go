package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/maketable"
)

func newTable(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table COMMAND",
		Short: "Make the table of records",
		Args:  cobra.ArbitraryArgs,
		RunE:  noCommand,
	}
	cmd.AddCommand(newTableCreate(env))
	return exitCodes(cmd, nil)
}

const tableCreateLong = `Makes the table of records as the template does, or adds to a table what it lacks.

A table that exists is compared with the definition. What is missing and safe to
add is shown, asked about and added: TTL, the stream, the index, recovery,
protection. What can't be changed is told, and nothing is done about it.

In an account the template is the better way: it has the worker and the alarms
too. On DynamoDB Local, --no-ttl keeps expired records: it deletes them within a
second of their time, where DynamoDB takes hours.`

func newTableCreate(env environment) *cobra.Command {
	var opt maketable.Options
	c := &change{}
	cmd := &cobra.Command{
		Use:   "create [--table TABLE] [FLAGS]",
		Short: "Make the table of records, or add to it what it lacks",
		Long:  tableCreateLong,
		Args:  takes(0, 0),
	}
	fs := cmd.Flags()
	op := newOperator(env, fs)
	fs.BoolVar(&opt.NoTTL, "no-ttl", false, "without TTL: expired records stay until their keys are used again")
	fs.BoolVar(&opt.NoRecovery, "no-recovery", false, "without point-in-time recovery")
	fs.BoolVar(&opt.NoProtection, "no-protection", false, "without deletion protection")
	fs.Int64Var(&opt.MaxWriteUnits, "max-write-units", 0, "most write units a second of a new table; 0 is no limit")
	fs.BoolVar(&c.dryRun, "dry-run", false, "show the changes, and make none")
	fs.BoolVar(&c.yes, "yes", false, "don't ask")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if opt.MaxWriteUnits < 0 {
			return wrongCallf("--max-write-units is not negative")
		}
		if err := op.connect(cmd.Context()); err != nil {
			return err
		}
		if err := op.tell(cmd.Context()); err != nil {
			return err
		}
		opt.Table = op.table
		plan, err := maketable.Make(cmd.Context(), op.client, opt)
		if err != nil {
			return err
		}
		return makeTable(env, cmd, op, c, plan)
	}
	return exitCodes(cmd, map[int]string{exitFound: "the table differs in a way that can't be changed"})
}

// tableResult is the output of table create as JSON.
type tableResult struct {
	Table   string   `json:"table"`
	Existed bool     `json:"existed"`
	Lacked  []string `json:"lacked"`
	Done    []string `json:"done"`
	Never   []string `json:"differs"`
}

func makeTable(env environment, cmd *cobra.Command, op *operator, c *change, plan *maketable.Plan) error {
	out := tableResult{Table: op.table, Existed: plan.Exists, Lacked: []string{}, Done: []string{}, Never: append([]string{}, plan.Never...)}
	for _, s := range plan.Steps {
		out.Lacked = append(out.Lacked, s.What)
	}
	tell := func(format string, args ...any) {
		if !op.json {
			_ = env.say(format, args...) // the command goes on
		}
	}
	for _, n := range plan.Never {
		tell("differs: %s", n)
	}
	var err error
	switch {
	case len(plan.Steps) == 0 && len(plan.Never) == 0:
		tell("the table %s is as it should be", op.table)
	case len(plan.Steps) > 0:
		var yes bool
		if yes, err = c.agreed(env, op.place, out.Lacked...); yes {
			err = plan.Run(cmd.Context(), func(what string) {
				out.Done = append(out.Done, what)
				tell("done: %s", what)
			})
		}
	}
	if op.json {
		err = errors.Join(env.printJSON(out), err)
	}
	if err == nil && len(plan.Never) > 0 {
		return exitWith(exitFound, nil)
	}
	return err
}
