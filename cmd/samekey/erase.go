package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/cli/operate"
	"github.com/samekey/samekey/internal/cli/tablescan"
	"github.com/samekey/samekey/internal/state"
)

// eraser erases the records of one caller.
type eraser struct {
	op     *operator
	s      *scan
	c      *change
	caller string

	engine *idem.Engine
	sealed int // records whose caller can't be read
	why    string
	found  []*store.Record
}

// erased is the report of erase.
type erased struct {
	Erased int `json:"erased"`
	// Left are records of the caller that are not erased, and why.
	Left map[string]string `json:"left"`
	// Sealed is the number of records whose caller can't be read without the data keys.
	Sealed int `json:"sealed"`
}

func newErase(env environment) *cobra.Command {
	e := &eraser{}
	cmd := &cobra.Command{
		Use: "erase --caller SCOPE [FLAGS]", Short: "Remove a caller and the answers from its finished records",
		Long: `Removes a caller, and all answers that were stored for it, from the finished records of one
namespace, for a person who asks for it. The keys stay taken until the records expire, so
no retry runs again: it hears 410. Operations that are not finished, and those with
undelivered jobs, are listed and left: settle, redrive or cancel them, and erase again.

The whole table is read. The records to erase are counted and asked about; each is erased
only if it is still as it was read, and keeps who decided, and when. Sealed records need
--keys-from.`,
		Args: takes(0, 0),
	}
	fs := cmd.Flags()
	e.op, e.s, e.c = newOperator(env, fs), newScan(env, fs), newChange(env, fs)
	e.op.registerKeys(fs)
	fs.StringVar(&e.caller, "caller", "", "the `SCOPE` of the caller, as samekey get prints it, such as jwt:jane; required")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case e.caller == "":
			return wrongCallf("whose records? --caller names the scope, as samekey get prints it")
		case e.c.by == "":
			return wrongCallf("who decides? Set --by or USER; it stays in the records")
		}
		if err := e.s.check(); err != nil {
			return err
		}
		return e.run(cmd.Context(), env)
	}
	return exitCodes(cmd, map[int]string{
		exitDone: "all are erased, or shown only with --dry-run", exitFailed: "failed, or not confirmed: nothing or some of them are erased; the same command goes on",
		exitFound: "some records are left: not finished, with undelivered jobs, or sealed",
	})
}

func (e *eraser) run(ctx context.Context, env environment) error {
	if err := e.op.open(ctx); err != nil {
		return err
	}
	e.engine = idem.New(e.op.store, func(o *idem.Options) {
		o.Namespace, o.Logger = e.op.namespace, slog.New(slog.DiscardHandler) // what it would say is returned
	})
	if err := e.search(ctx); err != nil {
		return err
	}
	rep := &erased{Left: map[string]string{}, Sealed: e.sealed}
	var todo []*operate.Plan
	for _, rec := range e.found {
		switch plan, err := operate.May(rec, env.now(), operate.Wish{Do: operate.Erase, By: e.c.by}); {
		case err == nil:
			todo = append(todo, plan)
		case !state.Over(rec.Expires, env.now()):
			rep.Left[rec.PK] = err.Error()
		}
	}
	if len(todo) > 0 {
		yes, err := e.c.agreed(env, e.op.place,
			fmt.Sprintf("Records of this caller that are erased: %d. Their keys stay taken until they expire; retries hear 410.", len(todo)), "This can't be corrected.")
		if err != nil {
			return err
		}
		if !yes {
			todo = nil
		}
	}
	for _, plan := range todo {
		switch _, err := plan.Run(ctx, e.engine, e.op.store); {
		case errors.Is(err, jobs.ErrMoved):
			rep.Left[plan.PK()] = "it was written meanwhile: erase again"
		case errors.Is(err, store.ErrSealed):
			return fmt.Errorf("sealed: %s; %d records are erased: with the keys the same command goes on", sealedText(e.op.sealer, err), rep.Erased)
		case err != nil:
			return fmt.Errorf("%w; %d records are erased: the same command goes on", err, rep.Erased)
		default:
			rep.Erased++
		}
	}
	return e.print(env, rep)
}

// search finds the caller's records. A sealed caller is read with the record's own key.
func (e *eraser) search(ctx context.Context) error {
	about := e.op.tellScan(e.s.opt.PagesPerSecond)
	var closed []string
	_, err := e.s.each(ctx, e.op, about, func(it tablescan.Item) error {
		switch rec := it.Record; {
		case rec == nil || state.Namespace(it.PK) != e.op.namespace:
		case rec.Scope == e.caller:
			e.found = append(e.found, rec)
		case rec.Scope == "":
			closed = append(closed, it.PK)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(e.found)+len(closed) == 0 {
		return e.op.ours(ctx)
	}
	for _, pk := range closed {
		rec, err := e.op.readable(e.op.store.Load(ctx, pk))
		switch {
		case err != nil:
			return err
		case e.op.sealed != "":
			e.sealed, e.why = e.sealed+1, e.op.sealed
		case rec != nil && rec.Scope == e.caller:
			e.found = append(e.found, rec)
		}
	}
	return nil
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
			err = errors.Join(err, env.say("%d sealed records may be of this caller, and are left: %s", rep.Sealed, e.why))
		}
		err = errors.Join(err, env.say("erased: %d", rep.Erased))
	}
	if err == nil && len(rep.Left)+rep.Sealed > 0 {
		return exitWith(exitFound, nil)
	}
	return err
}
