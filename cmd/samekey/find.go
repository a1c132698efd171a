package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem/store"
)

const refHelp = `REF names a record: its partition key (v1#NAMESPACE#HASH), the id of its operation,
the id of a job (OPERATION.PHASE.INDEX), a derived key (the UUID that the provider
got), or the short name of the record in a log line. A customer's key needs --key
instead; --key - reads the key from standard input, so that it is in no history of a
shell. The key is never printed.

--scope is the caller, as a record shows it: jwt:ISSUER|SUBJECT, lambda:APIID|SUBJECT or
iam:SUBJECT for an authorizer's subject, program:NAME for the result of Options.Scope,
source:NAME for a queue's or a function's, or one for callers whom nobody verifies
(OneScope). tenant:T| stands before it in a function with tenants, operation:NAME| before
that for Request.Operation. A bare SUBJECT means the subject in each of these forms.

A partition key, and --key with the whole --scope and --namespace, cost one read. Anything
else is looked for in what waits for people, and then by a scan of the whole table; for a
key the command asks first. A key is looked for in all namespaces, unless --namespace is
given as a flag. Not found (3) means that everything was compared.`

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
	fs.StringVar(&f.key, "key", "", "the customer's `KEY`; - reads it from standard input")
	fs.StringVar(&f.scope, "scope", "", "the `SCOPE` of the key, such as 'jwt:ISSUER|SUBJECT' or program:NAME, or a bare subject; one for callers whom nobody verifies")
	fs.StringVar(&f.route, "key-route", "", "the `ROUTE` of the key under idem.ACP or idem.UCP: METHOD PATH")
	fs.StringArrayVar(&f.services, "service", nil, "for a derived key: a `SERVICE` or SERVICE/STEP of tx.Key that an attempt which never came back may have called; may be repeated")
	fs.DurationVar(&f.since, "since", 0, "look only at records with an attempt in the last `TIME`, such as 2h")
	fs.Float64Var(&f.pages, "pages", 8, "of a scan: pages of 1 MB a second, each of 128 read units")
	fs.IntVar(&f.segments, "segments", 8, "of a scan: the parts that are read at once")
	fs.BoolVar(&f.noScan, "no-scan", false, "don't scan the table: fail if the index doesn't have it")
	return f
}

// check finds mistakes of the call before anything is sent.
func (f *finder) check(args []string) error {
	switch {
	case f.key == "" && f.scope != "":
		return wrongCallf("--scope needs --key")
	case f.key != "" && len(args) > 0:
		return wrongCallf("give REF or --key, not both")
	case f.key == "" && len(args) == 0:
		return wrongCallf("which record? Give REF, or --key KEY")
	case f.pages <= 0 || f.segments < 1 || f.segments > 1000 || f.since < 0:
		return wrongCallf("--pages is above 0, --segments 1 to 1000, --since not negative")
	}
	return nil
}

// notFound ends with exit code 3: everything was compared.
func notFound(what string) error { return exitWith(exitFound, errors.New(what)) }

// find returns the record that is meant. Without one it ends with exit code 3; if not
// everything could be compared, with 1.
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

// scanning says how much a scan of the whole table is, and for a key asks first.
func (f *finder) scanning(of records.Customer) (items int64, _ error) {
	if of.Key != "" {
		f.op.env.note("no record has this key under the callers that can be named, and none that waits for people has it")
	}
	items = f.op.tellScan(f.pages)
	if of.Key != "" && !agreed(f.op.env) {
		return 0, errors.New("the table was not scanned: records of other callers, and of callers with an issuer or API before the subject, were not compared")
	}
	f.progress.start("items seen")
	return items, nil
}

// tellScan says what a scan costs, from the table's description, which may be six hours
// old. It returns the number of items; 0 if that is unknown.
func (op *operator) tellScan(pages float64) int64 {
	items, bytes := op.size()
	if op.about == nil {
		op.env.note("a scan reads the whole table, by %g pages of 1 MB a second (128 read units each)", pages)
		return 0
	}
	const page = 1 << 20
	n := (bytes + page - 1) / page
	op.env.note("a scan reads the whole table: about %d items in %d pages, %d read units, %v at %g pages a second",
		items, n, n*128, time.Duration(float64(n)/pages*float64(time.Second)).Round(time.Second), pages)
	return items
}

// customer is whom the flags name.
func (f *finder) customer() (c records.Customer, err error) {
	c = records.Customer{Namespace: f.op.namespace, Only: f.op.limited(), Key: f.key, Scope: f.scope, Route: f.route}
	if f.key == "-" {
		if c.Key, err = readLine(f.op.env.stdin); err != nil {
			return c, wrongCallf("no key on standard input: %w", err)
		}
	}
	return c, nil
}
