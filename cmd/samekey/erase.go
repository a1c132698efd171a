package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// eraser erases the records of one caller.
type eraser struct {
	op     *operator
	s      *scan
	c      *change
	caller string

	found *records.Found
}

// erased is the report of samekey erase.
type erased struct {
	Erased int `json:"erased"`
	// Left maps each record of the caller that was not erased to the reason.
	Left map[string]string `json:"left"`
	// Sealed is the number of sealed records whose caller could not be read.
	// Unreadable is the number of records that this version can't read.
	Sealed     int `json:"sealed"`
	Unreadable int `json:"unreadable,omitempty"`
	// Callers maps a scope to the number of the scope's records that can be erased.
	Callers map[string]int `json:"callers"`
}

func newErase(env environment) *cobra.Command {
	e := &eraser{}
	cmd := &cobra.Command{
		Use: "erase --caller SCOPE [FLAGS]", Short: "Erase a caller and the caller's answers from finished records",
		Long: `Removes a caller, and all answers to this caller, from the table's records, for example
because the caller asks for deletion. The command reads the whole table, shows the number of
matching records by scope, and asks. It erases only records that are finished or expired,
and that have not changed since it read them. An erased record stores who decided, and when.
The keys stay in use until the records expire: a retry gets 410 and does not run.

Unfinished operations and undelivered jobs are listed, not erased: settle, redrive or cancel
them, then erase again. To erase sealed records, give --keys-from.

A SCOPE matches the caller in every tenant, operation and namespace. A bare subject also
matches under every issuer and API. The flag --namespace limits erase to one namespace.

The bucket FailedBucket stores copies of records for 30 days: erase can't reach the copies.`,
		Args: takes(0, 0),
	}
	fs := cmd.Flags()
	e.op, e.s, e.c = newOperator(env, fs), newScan(env, fs), newChange(env, fs)
	e.op.registerKeys(fs)
	fs.StringVar(&e.caller, "caller", "", "`SCOPE` of the caller as samekey get prints it, such as 'jwt:ISSUER|SUBJECT', or a bare subject; required")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case e.caller == "":
			return wrongCallf("no caller: give --caller SCOPE, as samekey get prints the scope")
		case e.c.by == "":
			return wrongCallf("no name of the person who decides: set --by or USER; the name is stored in the records")
		}
		if err := e.s.check(); err != nil {
			return err
		}
		return e.run(cmd.Context(), env)
	}
	return exitCodes(cmd, map[int]string{
		exitDone: "all of the caller's records are erased (with --dry-run: would be erased)", exitFailed: "not confirmed, or failed; some records may already be erased: run the command again",
		exitFound: "the caller has no record, or some records were not erased; the output says why",
	})
}

func (e *eraser) run(ctx context.Context, env environment) error {
	if err := e.op.open(ctx); err != nil {
		return err
	}
	if err := e.search(ctx); err != nil {
		return err
	}
	rep := &erased{Left: map[string]string{}, Sealed: e.found.Sealed, Unreadable: e.found.Unreadable, Callers: map[string]int{}}
	var todo []*records.Plan
	for _, rec := range e.found.Records {
		if e.op.limited() && state.Namespace(rec.PK) != e.op.namespace {
			rep.Left[rec.PK] = "the record is in another namespace"
			continue
		}
		plan, err := records.May(rec, env.now(), records.Wish{Do: records.Erase, By: e.c.by})
		if err != nil {
			rep.Left[rec.PK] = err.Error()
			continue
		}
		todo = append(todo, plan)
		rep.Callers[rec.Scope]++
	}
	if len(todo) > 0 {
		says := []string{fmt.Sprintf("Records to erase: %d. Their keys stay in use until the records expire; retries get 410.", len(todo))}
		for _, of := range slices.Sorted(maps.Keys(rep.Callers)) {
			says = append(says, fmt.Sprintf("  %d of %s", rep.Callers[of], plain.Line(of)))
		}
		yes, err := e.c.agreed(env, e.op.place, append(says, "This can't be undone.")...)
		if err != nil {
			return err
		}
		if !yes {
			todo = nil
		}
	}
	for _, plan := range todo {
		switch _, err := plan.Run(ctx, e.op.store); {
		case errors.Is(err, jobs.ErrMoved):
			rep.Left[plan.PK()] = "the record has changed since the search: erase again"
		case errors.Is(err, store.ErrSealed):
			return fmt.Errorf("a record is sealed: %s; %d records were erased before this record: to erase the other records, run the command again with a --keys-from that has the data key", sealedText(e.op.sealer, err), rep.Erased)
		case err != nil:
			return fmt.Errorf("%w; %d records were erased before this error: to erase the other records, run the command again", err, rep.Erased)
		default:
			rep.Erased++
		}
	}
	return e.print(env, rep)
}

// eraser.search finds the caller's records. To read a sealed caller, search needs the
// data keys from the program of --keys-from.
func (e *eraser) search(ctx context.Context) (err error) {
	about := e.op.tellScan(e.s.opt.PagesPerSecond)
	e.found, err = e.s.of(ctx, e.op, about, records.Customer{Scope: e.caller})
	if err != nil || len(e.found.Records)+e.found.Unknown() > 0 {
		return err
	}
	return e.op.ours(ctx)
}

func (e *eraser) print(env environment, rep *erased) error {
	var err error
	if e.op.json {
		err = env.printJSON(rep)
	} else {
		rows := make([][]string, 0, len(rep.Left))
		for _, pk := range slices.Sorted(maps.Keys(rep.Left)) {
			rows = append(rows, []string{pk, rep.Left[pk]})
		}
		err = env.section([]string{"LEFT", "WHY"}, rows)
		if rep.Sealed > 0 {
			err = errors.Join(err, env.say("%d sealed records may belong to this caller, but were not erased: %s", rep.Sealed, sealedText(e.op.sealer, e.found.Why)))
		}
		if rep.Unreadable > 0 {
			err = errors.Join(err, env.say("%d records may belong to this caller, but were not erased, because this version can't read them", rep.Unreadable))
		}
		err = errors.Join(err, env.say("erased: %d", rep.Erased))
	}
	switch {
	case err != nil:
		return err
	case len(rep.Left)+rep.Sealed+rep.Unreadable > 0:
		return exitWith(exitFound, nil)
	case len(e.found.Records) == 0:
		return notFound(fmt.Sprintf("no record of %s; records compared: %d", plain.Line(e.caller), e.found.Seen-e.found.Missing))
	}
	return nil
}
