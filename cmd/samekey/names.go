package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/names"
	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/cmd/samekey/internal/vet/lock"
)

// vetOpen compares the phases and calls of open operations with the build that a lock
// file describes.
func vetOpen(ctx context.Context, env environment, op *operator, s *scan, file string) error {
	if file == "" {
		return wrongCallf("no lock file: give --lock FILE (samekey vet --lock FILE --update ./... writes the file)")
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
		return wrongCallf("%s has no handlers: run samekey vet --lock %s --update ./...", file, file)
	}
	if err := op.open(ctx); err != nil {
		return err
	}
	about, _ := op.size()
	rep := &names.Report{Handlers: build.Handlers(), Rows: []*names.Row{}}
	s.opt.OpenOnly = true
	rep.Seen, err = s.each(ctx, op, about, func(it records.Item) error {
		switch {
		case it.Err != nil:
			rep.Unreadable++
		case it.Record != nil:
			rep.Add(build, it.Record)
		}
		return nil
	})
	if err != nil {
		return err // print no list: an incomplete list would look complete
	}
	if rep.Open == 0 {
		if err := op.ours(ctx); err != nil {
			return err
		}
	}
	rep.Sort()
	return env.printNames(op, rep)
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
		err = e.printTable([]string{"DANGER", "NOT IN THE BUILD", "STATE", "ROUTE", "COUNT", "OLDEST", "OLDEST RECORD"}, rows)
		err = errors.Join(err, e.say("%d items seen; %d open operations, of which %d are incompatible with the build's %d handlers; %d unreadable items", rep.Seen, rep.Open, rep.Misfits(), rep.Handlers, rep.Unreadable))
	}
	if err == nil && (rep.Misfits() > 0 || rep.Unreadable > 0) {
		return exitWith(exitFound, nil)
	}
	return err
}
