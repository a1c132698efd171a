package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
)

// lister holds the flags of samekey list.
type lister struct {
	op       *operator
	progress *progress
	reasons  []string
	route    string
	older    time.Duration
	max      int
	scan     bool
	each     bool
	pages    float64
	grace    time.Duration
	caller   string
	stats    bool
	needs    bool

	outages []*outage // in the order in which list found their first entries
	places  map[place]*outage
}

// listed is the report of samekey list.
type listed struct {
	// From is the source of the entries: index or scan.
	From     string                        `json:"from"`
	Complete bool                          `json:"complete"`
	Scanned  int                           `json:"scanned,omitempty"`
	ByReason map[state.Reason]stream.Tally `json:"by_reason"` // counts and ages of all matching entries, also of those beyond --max
	Others   int                           `json:"others"`    // number of entries that the filters leave out
	Entries  []stream.Entry                `json:"entries"`
}

func newList(env environment) *cobra.Command {
	l := &lister{}
	cmd := &cobra.Command{
		Use:   "list [FLAGS]",
		Short: "List the operations that wait for people, the oldest first",
		Long: `Lists the operations and jobs that wait for people, from the table's index "waiting".
A row counts the entries with the same reason and route, and with the same phase or kind of
job (column AT). The row shows the record of the oldest entry.

--scan         reads the whole table, and also lists abandoned operations and late jobs,
               which the worker handles without people
--caller       reads the whole table, and lists all operations of one caller, finished
               ones too, the newest first
--stats        counts the records of a sample by state, route and age; with --scan, it
               counts the records of the whole table
--fingerprints reads the whole table, and counts the records by the secret and scheme of
               their fingerprint; a secret that no record needs can be removed`,
		Args: takes(0, 0),
	}
	fs := cmd.Flags()
	l.op = newOperator(env, fs)
	l.register(env, fs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if l.max < 0 || l.pages <= 0 || l.grace < 0 || l.older < 0 {
			return wrongCallf("--pages must be above 0; --max, --grace and --older must not be negative")
		}
		if err := l.op.open(cmd.Context()); err != nil {
			return err
		}
		switch {
		case l.stats || l.needs:
			return l.count(cmd.Context())
		case l.caller != "":
			return l.ofCaller(cmd.Context())
		}
		rep, err := l.list(cmd.Context())
		if err == nil && len(rep.ByReason)+rep.Others == 0 {
			if err := l.op.ours(cmd.Context()); err != nil {
				return err
			}
		}
		if rep == nil {
			return err
		}
		if l.op.json {
			if perr := env.printJSON(rep); perr != nil {
				return perr
			}
			return err
		}
		if perr := l.print(rep); perr != nil {
			return perr
		}
		return err
	}
	return exitCodes(cmd, map[int]string{exitFailed: "failed, or the list is incomplete", exitFound: "with --caller: the caller has no operation"})
}

func (l *lister) register(env environment, fs *pflag.FlagSet) {
	l.progress = newProgress(env, fs)
	fs.StringSliceVar(&l.reasons, "reason", nil, "list only these `REASONS`, separated by commas: "+strings.Join(state.ReasonNames(true), ", ")+"; with --scan also "+strings.Join(state.ReasonNames(false), ", "))
	fs.StringVar(&l.route, "route", "", "list only operations of this `ROUTE`")
	fs.DurationVar(&l.older, "older", 0, "list only entries that are older than `TIME`")
	fs.IntVar(&l.max, "max", 1000, "print at most this many rows (with --json: entries), and count the rest")
	fs.BoolVar(&l.each, "each", false, "print a row for each record")
	fs.BoolVar(&l.scan, "scan", false, "read the whole table, and list all unfinished work")
	fs.StringVar(&l.caller, "caller", "", "list all operations of the caller `SCOPE`, in every namespace; give the scope that samekey get prints, or a bare subject; a bare subject matches in every kind of scope")
	fs.BoolVar(&l.stats, "stats", false, "count the records by state, route and age")
	fs.BoolVar(&l.needs, "fingerprints", false, "count the records by the secret and scheme of their fingerprint")
	l.op.registerKeys(fs)
	fs.Float64Var(&l.pages, "pages", 4, "scan: number of 1-MB pages to read per second; each page costs 128 read units")
	fs.DurationVar(&l.grace, "grace", state.DefaultGrace, "scan: the completer's grace: how long the completer leaves an abandoned operation to the client")
}

func (l *lister) list(ctx context.Context) (*listed, error) {
	if !l.scan {
		rep, err := l.index(ctx)
		if !errors.Is(err, stream.ErrNoIndex) {
			return rep, err
		}
		l.op.env.note("table %s has no index \"waiting\": scanning the whole table", l.op.table)
	}
	return l.sweep(ctx)
}

func (l *lister) index(ctx context.Context) (*listed, error) {
	for _, why := range l.reasons {
		if !slices.Contains(stream.WaitingReasons(), state.Reason(why)) {
			return nil, wrongCallf("--reason %s needs --scan: the index never has entries with this reason", plain.Line(why))
		}
	}
	rep := &listed{From: "index", ByReason: make(map[state.Reason]stream.Tally), Entries: []stream.Entry{}}
	l.progress.start("entries read")
	defer l.progress.end()
	n := int64(0)
	for e, err := range stream.NewWaiting(l.op.client, l.op.store).All(ctx) {
		if err != nil {
			if n == 0 {
				return nil, err
			}
			return rep, err
		}
		n++
		l.progress.at(n, 0)
		l.add(rep, e)
	}
	rep.Complete = true
	return rep, nil
}

func (l *lister) sweep(ctx context.Context) (*listed, error) {
	total := l.op.tellScan(l.pages)
	l.progress.start("items seen")
	defer l.progress.end()
	api := &counted{ScanAPI: l.op.client, seen: func(n int64) { l.progress.at(n, total) }}
	got, err := stream.NewSweep(api, l.op.store, func(o *stream.SweepOptions) {
		o.MaxEntries, o.PagesPerSecond, o.Grace, o.Now = 1<<30, l.pages, l.grace, l.op.env.now
		o.Logger = slog.New(slog.DiscardHandler) // no logs of the sweep, because samekey list prints the same facts
	}).List(ctx)
	if err == nil && !got.Complete {
		if err = ctx.Err(); err == nil {
			err = errors.New("the scan stopped before the table's end")
		}
	}
	rep := &listed{From: "scan", Complete: err == nil, Scanned: got.Scanned, ByReason: make(map[state.Reason]stream.Tally), Entries: []stream.Entry{}}
	for _, e := range got.Entries {
		l.add(rep, e)
	}
	return rep, err
}

// owned is an operation of a caller.
type owned struct {
	Record    string    `json:"record"`
	Operation string    `json:"operation"`
	Scope     string    `json:"scope"`
	Route     string    `json:"route,omitempty"`
	State     string    `json:"state"`
	Status    int       `json:"status,omitempty"` // status of the answer
	Claimed   time.Time `json:"claimed"`
}

// ofCaller lists all operations of a caller.
func (l *lister) ofCaller(ctx context.Context) error {
	total := l.op.tellScan(l.pages)
	s := &scan{opt: records.ScanOptions{PagesPerSecond: l.pages}, progress: l.progress}
	found, err := s.of(ctx, l.op, total, records.Customer{Namespace: l.op.namespace, Only: l.op.limited(), Scope: l.caller})
	if err != nil {
		return err
	}
	all, rows := make([]owned, 0, len(found.Records)), make([][]string, 0, len(found.Records))
	for _, r := range found.Records {
		o := owned{Record: r.PK, Operation: r.ID, Scope: r.Scope, Route: r.Route, State: state.Word(r, l.op.env.now()), Claimed: r.Created.UTC()}
		answer := ""
		if r.Response != nil && r.Response.Status != 0 {
			o.Status, answer = r.Response.Status, strconv.Itoa(r.Response.Status)
		}
		all, rows = append(all, o), append(rows, []string{at(r.Created), o.State, answer, o.Route, o.Scope, o.Record})
	}
	if l.op.json {
		err = l.op.env.printJSON(struct {
			Operations []owned `json:"operations"`
			Seen       int     `json:"seen"`
			Unknown    int     `json:"not_compared"`
		}{all, found.Seen, found.Unknown()})
	} else {
		err = l.op.env.printTable([]string{"CLAIMED", "STATE", "ANSWER", "ROUTE", "SCOPE", "RECORD"}, rows)
	}
	switch says := found.Untold(records.NoCaller); {
	case err != nil:
		return err
	case says != "":
		return errors.New(plain.Line(says))
	case len(all) > 0:
		return nil
	}
	if err := l.op.ours(ctx); err != nil {
		return err
	}
	return notFound(fmt.Sprintf("no operation of %s; records compared: %d", plain.Line(l.caller), found.Seen))
}

// lister.add adds an entry if it matches the flags.
func (l *lister) add(rep *listed, e stream.Entry) {
	age := l.age(e)
	if l.route != "" && e.Route != l.route || age < l.older || len(l.reasons) > 0 && !slices.Contains(l.reasons, string(e.Reason)) {
		rep.Others++
		return
	}
	t := rep.ByReason[e.Reason]
	t.Count++
	t.Oldest = max(t.Oldest, int64(age/time.Second))
	rep.ByReason[e.Reason] = t
	if len(rep.Entries) < l.max {
		rep.Entries = append(rep.Entries, e)
		if l.each {
			l.outages = append(l.outages, &outage{e, 1})
		}
	}
	if !l.each {
		l.fold(e)
	}
}

// lister.age returns how long an entry has waited for a person. For an entry that
// doesn't wait for a person, age returns how long ago the latest attempt began. The
// result is 0 if unknown, or if the clock that set the time is ahead.
func (l *lister) age(e stream.Entry) time.Duration {
	switch {
	case !e.Since.IsZero():
		return max(0, l.op.env.now().Sub(e.Since))
	case !e.Run.IsZero():
		return max(0, e.Age(l.op.env.now()))
	}
	return 0
}

func (l *lister) print(rep *listed) error {
	all := l.outages[:min(l.max, len(l.outages))]
	rows := make([][]string, 0, len(all))
	for _, o := range all {
		e := o.oldest
		where := e.Phase
		switch {
		case e.Job != "" && o.count > 1:
			where = "job " + e.Kind
		case e.Job != "":
			where = "job " + e.ID + "." + e.Job + " " + e.Kind
		}
		rows = append(rows, []string{string(e.Reason), strconv.Itoa(o.count), l.age(e).Round(time.Second).String(), strconv.Itoa(e.Tries), e.Route, where, e.PK, e.LastErr})
	}
	if err := l.op.env.printTable([]string{"REASON", "COUNT", "AGE", "TRIES", "ROUTE", "AT", "RECORD", "ERROR"}, rows); err != nil {
		return err
	}
	var counts []string
	for _, why := range slices.Sorted(maps.Keys(rep.ByReason)) {
		counts = append(counts, fmt.Sprintf("%s: %d", why, rep.ByReason[why].Count))
	}
	switch {
	case !rep.Complete:
		counts = append(counts, "the list is incomplete")
	case len(rep.ByReason) == 0 && rep.Others == 1:
		counts = append(counts, "the only entry doesn't match the flags")
	case len(rep.ByReason) == 0 && rep.Others > 0:
		counts = append(counts, fmt.Sprintf("none of the %d entries matches the flags", rep.Others))
	case len(rep.ByReason) == 0:
		counts = append(counts, "nothing waits for people")
	}
	if rep.From == "scan" {
		counts = append(counts, fmt.Sprintf("%d items seen", rep.Scanned))
	}
	l.op.env.note("%s", strings.Join(counts, "; "))
	return nil
}

// place is where the operation or job of an entry waits, and why.
type place struct {
	why                state.Reason
	route, phase, kind string
	err                string // last error of an entry without an operation, which has no route, phase or kind; otherwise empty
}

// An outage sums up the entries of one place. They usually have one cause.
type outage struct {
	oldest stream.Entry
	count  int
}

// lister.fold adds an entry to its outage.
func (l *lister) fold(e stream.Entry) {
	p := place{why: e.Reason, route: e.Route, phase: e.Phase, kind: e.Kind}
	if e.ID == "" {
		p.err = e.LastErr
	}
	if l.places == nil {
		l.places = make(map[place]*outage)
	}
	o := l.places[p]
	if o == nil {
		o = &outage{oldest: e}
		l.places[p], l.outages = o, append(l.outages, o)
	}
	o.count++
	if l.age(e) > l.age(o.oldest) {
		o.oldest = e
	}
}

// counted is a stream.ScanAPI that counts the items of a scan.
type counted struct {
	stream.ScanAPI
	mu   sync.Mutex
	n    int64
	seen func(int64)
}

func (c *counted) Scan(ctx context.Context, in *dynamodb.ScanInput, optFns ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	out, err := c.ScanAPI.Scan(ctx, in, optFns...)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n += int64(out.ScannedCount)
		c.seen(c.n)
	}
	return out, err
}
