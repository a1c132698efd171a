package main

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/cmd/samekey/internal/stats"
	"github.com/samekey/samekey/internal/background/stream"
)

// lister.count counts the records of a sample. With --scan or --fingerprints, it counts
// the records of the whole table. With --fingerprints, it prints the counts for each
// secret and scheme of a fingerprint.
func (l *lister) count(ctx context.Context) error {
	env, op := l.op.env, l.op
	s := &scan{opt: records.ScanOptions{PagesPerSecond: l.pages, Segments: 4, Pages: 1}, progress: l.progress}
	if l.scan || l.needs {
		s.opt.Pages = 0
	}
	rep := stats.New(op.table, env.now(), l.grace)
	rep.Items, rep.Bytes = op.size()
	seen, err := s.each(ctx, op, rep.Items, func(it records.Item) error {
		rep.Add(it)
		return nil
	})
	if err != nil {
		return err
	}
	if rep.Records == 0 {
		if err := op.ours(ctx); err != nil {
			return err
		}
	}
	rep.End(seen, s.opt.Pages == 0)
	if rep.Waiting, err = stream.NewWaiting(op.client, op.store).Count(ctx); err != nil && !errors.Is(err, stream.ErrNoIndex) {
		return err
	}
	switch {
	case l.needs && op.json:
		return env.printJSON(rep.Needs)
	case l.needs:
		return env.printNeeds(rep)
	case op.json:
		return env.printJSON(rep)
	}
	return env.printStats(rep)
}

func (e environment) printStats(rep *stats.Report) error {
	what := "the whole table"
	if !rep.Whole {
		what = "a sample"
	}
	err := e.say("table %s: about %d items, %d bytes; items read: %d (%s): %d records, %d other items, %d unreadable\n",
		rep.Table, rep.Items, rep.Bytes, rep.Seen, what, rep.Records, rep.Others, rep.Unreadable)
	rows := make([][]string, 0, len(rep.States))
	for _, c := range rep.States {
		rows = append(rows, []string{c.Name, c.Cause, strconv.Itoa(c.Count)})
	}
	err = errors.Join(err, e.section([]string{"STATE", "CAUSE", "COUNT"}, rows))
	err = errors.Join(err, e.section([]string{"ROUTE", "COUNT"}, plainCounts(rep.Routes)), e.section([]string{"AGE", "COUNT"}, plainCounts(rep.Ages)))
	rows = make([][]string, 0, len(rep.Retention))
	for _, k := range rep.Retention {
		rows = append(rows, []string{k.Function, seconds(k.Least), seconds(k.Most), strconv.Itoa(k.Count)})
	}
	err = errors.Join(err, e.section([]string{"FUNCTION", "RETENTION, LEAST", "MOST", "COUNT"}, rows))
	err = errors.Join(err, e.say("jobs: %d waiting, %d to deliver later, %d parked", rep.Jobs, rep.Later, rep.Parked))
	if rep.Waiting != nil {
		err = errors.Join(err, e.say("records that wait for people (in the whole table): %d", rep.Waiting.Count))
	}
	if !rep.OldestOpen.IsZero() {
		err = errors.Join(err, e.say("oldest open operation: %s, claimed %v ago", rep.OldestOpenRecord, rep.At.Sub(rep.OldestOpen).Round(time.Second)))
	}
	err = errors.Join(err, e.say("size of a record: %d bytes on average, %d at most; %d records are above 1 KB", rep.MeanBytes, rep.MostBytes, rep.OverKB))
	return errors.Join(err, e.say("records cost about %d write units per month, if each day is like the last", rep.WriteUnits))
}

func seconds(n int64) string { return (time.Duration(n) * time.Second).String() }

func plainCounts(all []*stats.Count) (rows [][]string) {
	for _, c := range all {
		rows = append(rows, []string{c.Name, strconv.Itoa(c.Count)})
	}
	return rows
}

// environment.section prints a table and an empty line. If there are no rows, section
// prints nothing.
func (e environment) section(head []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	return errors.Join(e.printTable(head, rows), e.say(""))
}

func (e environment) printNeeds(rep *stats.Report) error {
	rows := make([][]string, 0, len(rep.Needs))
	for _, s := range rep.Needs {
		until := ""
		if !s.Until.IsZero() {
			until = s.Until.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{cmp.Or(s.Secret, "(none)"), cmp.Or(s.Scheme, "(default)"), strconv.Itoa(s.Count), strconv.Itoa(s.Open), until})
	}
	if err := e.printTable([]string{"SECRET", "SCHEME", "RECORDS", "OPEN", "THE OTHERS EXPIRE BY"}, rows); err != nil {
		return err
	}
	return e.say("%d items seen, %d unreadable", rep.Seen, rep.Unreadable)
}
