package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem/store"
)

const refHelp = `REF is one of: the record's partition key (v1#NAMESPACE#HASH), the operation's id, a job's
id (OPERATION.PHASE.INDEX), a derived key (the UUID that the provider got), or the
record's short name in a log line. Give a customer's key with --key KEY. With --key -, the
command reads the key from standard input, so that the shell's history doesn't get the key.
The key is never printed.

--scope is the caller:
  jwt:ISSUER|SUBJECT, lambda:APIID|SUBJECT, iam:SUBJECT   an authorizer's subject
  program:NAME   the result of Options.Scope
  source:NAME    a queue, or another source of events
  one            all unverified callers, under idem.OneScope
  SUBJECT        a bare subject, which matches in any form above
A scope may begin with operation:NAME| (from Request.Operation), tenant:NAME|, or both.

If you give the partition key, or --key with the whole --scope and --namespace, the search
costs one read. Otherwise the command searches the index of waiting operations, then the
whole table. The search covers all namespaces. With --key, the command asks before it scans
the table, and --namespace limits the search to one namespace.`

// finder finds the record that a person means.
type finder struct {
	op       *operator
	progress *progress

	key, scope, route string
	services          []string
	since             time.Duration
	pages             float64
	segments          int
	noScan            bool
}

func newFinder(op *operator, fs *pflag.FlagSet) *finder {
	f := &finder{op: op, progress: newProgress(op.env, fs)}
	op.registerKeys(fs)
	fs.StringVar(&f.key, "key", "", "the customer's `KEY`, or - to read the key from standard input")
	fs.StringVar(&f.scope, "scope", "", "`SCOPE` of the key, such as 'jwt:ISSUER|SUBJECT' or program:NAME; or a bare subject")
	fs.StringVar(&f.route, "key-route", "", "`ROUTE` of the key's request, as METHOD PATH; only for handlers that use idem.ACP or idem.UCP")
	fs.StringArrayVar(&f.services, "service", nil, "if REF is a derived key: also compare REF with the keys of abandoned attempts' calls to this `SERVICE` (or SERVICE/STEP, as in tx.Key); may be repeated")
	fs.DurationVar(&f.since, "since", 0, "search only records with an attempt in the last `TIME`, such as 2h")
	fs.Float64Var(&f.pages, "pages", 8, "scan: number of 1-MB pages to read per second; each page costs 128 read units")
	fs.IntVar(&f.segments, "segments", 8, "scan: number of parts of the table to read at the same time")
	fs.BoolVar(&f.noScan, "no-scan", false, "search only the index: fail instead of scanning the table")
	return f
}

// finder.check returns a usage error if flags or arguments are wrong. It sends no
// request.
func (f *finder) check(args []string) error {
	switch {
	case f.key == "" && f.scope != "":
		return wrongCallf("--scope needs --key")
	case f.key != "" && len(args) > 0:
		return wrongCallf("give REF or --key, not both")
	case f.key == "" && len(args) == 0:
		return wrongCallf("no record is named: give REF or --key KEY")
	case f.pages <= 0 || f.segments < 1 || f.segments > 1000 || f.since < 0:
		return wrongCallf("--pages must be above 0, --segments 1 to 1000, and --since not negative")
	}
	return nil
}

// notFound returns an error with exit code 3. This code means that all records were
// compared and that no record matches.
func notFound(what string) error { return exitWith(exitFound, errors.New(what)) }

// finder.find returns the record that the arguments and flags name. An error has exit
// code 3 if no record matches, and 2 if the name is invalid or means several records.
// Otherwise the exit code is 1, for instance if some records could not be compared.
func (f *finder) find(ctx context.Context, args []string) (*store.Record, error) {
	by := &records.Finder{
		Client: f.op.client, Store: f.op.store, Services: f.services, NoScan: f.noScan, Nothing: f.op.ours,
		Scan: records.ScanOptions{Segments: f.segments, PagesPerSecond: f.pages},
	}
	if f.since > 0 {
		by.Since = f.op.env.now().Add(-f.since)
	}
	total := int64(0)
	by.Scan.Seen = func(n int64) { f.progress.at(n, total) }
	by.Scanning = func(of records.Customer) (err error) {
		total, err = f.scanning(of)
		return err
	}
	defer f.progress.end()
	rec, err := f.op.readable(f.by(ctx, by, args))
	if e, is := errors.AsType[records.NotFound](err); is {
		return nil, notFound(e.Error())
	}
	if e, is := errors.AsType[records.Unclear](err); is {
		return nil, wrongCall(e)
	}
	return rec, err
}

func (f *finder) by(ctx context.Context, by *records.Finder, args []string) (*store.Record, error) {
	if f.key == "" {
		return by.Ref(ctx, args[0])
	}
	c, err := f.customer()
	if err != nil {
		return nil, err
	}
	return by.Key(ctx, c)
}

// finder.scanning prints the cost of a scan of the whole table. In a search by key,
// scanning also asks the person whether to scan.
func (f *finder) scanning(of records.Customer) (items int64, _ error) {
	if of.Key != "" {
		f.op.env.note("no record found for this key under any known caller; searching the table")
	}
	items = f.op.tellScan(f.pages)
	if of.Key != "" && !agreed(f.op.env) {
		return 0, errors.New("the table was not scanned, so the key may have a record that was not found. To find the record by one read, give the whole --scope, such as 'jwt:ISSUER|SUBJECT'")
	}
	f.progress.start("items seen")
	return items, nil
}

// tellScan prints the cost of a scan and returns the number of items; 0 if unknown. The
// cost and the number are from the table's description, which may be six hours old.
func (op *operator) tellScan(pages float64) int64 {
	items, bytes := op.size()
	if op.about == nil {
		op.env.note("the scan reads the whole table: %g pages of 1 MB a second, 128 read units a page", pages)
		return 0
	}
	const page = 1 << 20
	n := (bytes + page - 1) / page
	op.env.note("the scan reads the whole table: about %d items in %d pages, %d read units, %v at %g pages a second",
		items, n, n*128, time.Duration(float64(n)/pages*float64(time.Second)).Round(time.Second), pages)
	return items
}

// finder.customer makes a records.Customer from the flags.
func (f *finder) customer() (c records.Customer, err error) {
	c = records.Customer{Namespace: f.op.namespace, Only: f.op.limited(), Key: f.key, Scope: f.scope, Route: f.route}
	if f.key == "-" {
		if c.Key, err = readLine(f.op.env.stdin); err != nil {
			return c, wrongCallf("no key on standard input: %w", err)
		}
	}
	return c, nil
}
