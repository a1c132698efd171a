package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/names"
	"github.com/samekey/samekey/cmd/samekey/internal/tablescan"
	"github.com/samekey/samekey/cmd/samekey/internal/vet/lock"
)

const namesLong = `Holds the phases and calls of open operations against a build, before it is deployed.

The build's phases are in the lock file that "samekey vet --lock FILE --update"
writes. An operation with a phase that the build doesn't have is refused by it
(blocked) until the old build is back; one with a call that may have been made,
and that the build doesn't make, may make that call twice under another name.

It scans the table: DynamoDB has no shorter way to all open operations.`

func newNames(env environment) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "names --lock FILE [--table TABLE] [FLAGS]",
		Short: "Hold a build's phases and calls against open operations, before a deploy",
		Long:  namesLong,
		Args:  takes(0, 0),
	}
	fs := cmd.Flags()
	fs.StringVar(&file, "lock", "", "the lock `FILE` of the build; required")
	op := newOperator(env, fs)
	s := newScan(env, fs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if file == "" {
			return wrongCallf("which build? --lock names its lock file; samekey vet --lock FILE --update ./... writes it")
		}
		if err := s.check(); err != nil {
			return err
		}
		f, err := lock.Read(file)
		if err != nil {
			return wrongCall(err)
		}
		build := names.Read(f)
		if build.Handlers() == 0 {
			return wrongCallf("%s has no handlers: samekey vet --lock %s --update ./... writes them", file, file)
		}
		if err := op.open(cmd.Context()); err != nil {
			return err
		}
		about, _ := op.size()
		rep := &names.Report{Handlers: build.Handlers(), Rows: []*names.Row{}}
		s.opt.OpenOnly = true
		rep.Seen, err = s.each(cmd.Context(), op, about, func(it tablescan.Item) error {
			switch {
			case it.Err != nil:
				rep.Unreadable++
			case it.Record != nil:
				rep.Add(build, it.Record)
			}
			return nil
		})
		if err != nil {
			return err // an incomplete list would look like a good one
		}
		if rep.Open == 0 {
			if err := op.ours(cmd.Context()); err != nil {
				return err
			}
		}
		rep.Sort()
		return env.printNames(op, rep)
	}
	return exitCodes(cmd, map[int]string{
		exitDone: "the build fits every open operation", exitFound: "the build doesn't fit some operations, or some are not understood",
	})
}

func (e environment) printNames(op *operator, rep *names.Report) error {
	var err error
	if op.json {
		err = e.printJSON(rep)
	} else {
		rows := make([][]string, len(rep.Rows))
		for i, r := range rep.Rows {
			rows[i] = []string{string(r.Danger), r.Unknown, r.State, r.Route, strconv.Itoa(r.Count), e.now().Sub(r.Oldest).Round(time.Second).String(), r.PK}
		}
		err = e.printTable([]string{"DANGER", "NOT IN THE BUILD", "STATE", "ROUTE", "COUNT", "OLDEST", "PK OF THE OLDEST"}, rows)
		err = errors.Join(err, e.say("%d items seen, %d open operations, %d that the build's %d handlers don't fit, %d not understood", rep.Seen, rep.Open, rep.Misfits(), rep.Handlers, rep.Unreadable))
	}
	if err == nil && (rep.Misfits() > 0 || rep.Unreadable > 0) {
		return exitWith(exitFound, nil)
	}
	return err
}
