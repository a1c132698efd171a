package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/explain"
	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/cmd/samekey/internal/recordkey"
	"github.com/samekey/samekey/cmd/samekey/internal/tablescan"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
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
	fs.StringVar(&f.route, "key-route", "", "the `ROUTE` of the key, if Options.ScopeRoute is set")
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
	if f.key != "" {
		return f.byKey(ctx)
	}
	ref := args[0]
	if strings.Count(ref, "#") == 2 {
		return f.op.load(ctx, ref, "there is no record "+plain.Line(ref))
	}
	w, in, err := f.wanted(ref)
	if err != nil {
		return nil, err
	}
	pk, err := f.waiting(ctx, in)
	if err != nil {
		return nil, err
	}
	if pk == "" {
		if pk, err = f.scan(ctx, w, recordkey.Customer{}); err != nil {
			return nil, err
		}
	}
	return f.found(ctx, pk, ref)
}

// found loads the record that the index or a scan showed for ref. Both are older than the
// record, whose key another operation may have by now.
func (f *finder) found(ctx context.Context, pk, ref string) (*store.Record, error) {
	rec, err := f.op.load(ctx, pk, "the record has gone since it was found")
	if err != nil {
		return nil, err
	}
	if ref = operationOf(ref); ref != rec.ID && ref != redact.Record(rec.PK) && !derives(rec, ref, f.services) {
		return nil, notFound(fmt.Sprintf("the record has changed since it was found: its operation is %s by now, and not that of %s", plain.Line(rec.ID), plain.Line(ref)))
	}
	return rec, nil
}

// operationOf is the operation of a job; any other ref as it is.
func operationOf(ref string) string {
	if m := isJob.FindStringSubmatch(ref); m != nil {
		return m[1]
	}
	return ref
}

func derives(rec *store.Record, key string, services []string) bool {
	is, _ := explain.Derives(rec, key, services...)
	return is
}

var (
	isOperation = regexp.MustCompile(`^[A-Z2-7]{26}$`)
	isJob       = regexp.MustCompile(`^([A-Z2-7]{26})\.\d+\.\d+$`)
	isDerived   = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	isShort     = regexp.MustCompile(`^[A-Za-z0-9_-]{8}$`)
)

// wanted is what a scan looks for, and how an entry of the index is recognised.
func (f *finder) wanted(ref string) (w tablescan.Wanted, in func(stream.Entry) bool, _ error) {
	w.Since = f.from()
	ref = operationOf(ref)
	switch {
	case isOperation.MatchString(ref):
		w.ID = ref
		return w, func(e stream.Entry) bool { return e.ID == ref }, nil
	case isShort.MatchString(ref):
		w.Short = ref
		return w, func(e stream.Entry) bool { return e.Record == ref }, nil
	case isDerived.MatchString(ref):
		w.Match = func(r *store.Record) (is, known bool) { return explain.Derives(r, ref, f.services...) }
		return w, nil, nil
	}
	return w, nil, wrongCallf("%q is no partition key, operation, job, derived key or short name of a record; a customer's key needs --key", plain.Line(ref))
}

// waiting looks for a record in the index of what waits for people.
func (f *finder) waiting(ctx context.Context, in func(stream.Entry) bool) (string, error) {
	if in == nil {
		return "", nil
	}
	for e, err := range stream.NewWaiting(f.op.client, f.op.store).All(ctx) {
		switch {
		case errors.Is(err, stream.ErrNoIndex):
			return "", nil
		case err != nil:
			return "", err
		case in(e):
			return e.PK, nil
		}
	}
	return "", nil
}

// byKey finds the record of a customer's key.
func (f *finder) byKey(ctx context.Context) (*store.Record, error) {
	c, err := f.customer()
	if err != nil {
		return nil, err
	}
	if err := c.Check(ctx); err != nil {
		return nil, wrongCall(err) // a key that no handler accepts
	}
	found, err := recordkey.Find(ctx, f.op.store, c, stream.NewWaiting(f.op.client, f.op.store).All(ctx))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		f.op.env.note("no record has this key under the callers that can be named, and none that waits for people has it")
		pk, err := f.scan(ctx, tablescan.Wanted{Since: f.from()}, c)
		if err != nil {
			return nil, err
		}
		return f.op.load(ctx, pk, "the record has gone since it was found")
	}
	pk, err := only(found)
	if err != nil {
		return nil, err
	}
	return f.op.load(ctx, pk, "the record has gone since it was found")
}

// only is the key of the record that was found. Of several, a person chooses.
func only(found []*store.Record) (string, error) {
	if len(found) == 1 {
		return found[0].PK, nil
	}
	says := []string{fmt.Sprintf("%d records match: which one? Give its partition key", len(found))}
	for _, r := range found {
		says = append(says, plain.Line(strings.TrimSpace("  "+r.PK+"  "+r.Scope+"  "+r.Route)))
	}
	return "", wrongCall(errors.New(strings.Join(says, "\n")))
}

func (f *finder) from() (t time.Time) {
	if f.since > 0 {
		t = f.op.env.now().Add(-f.since)
	}
	return t
}

// scan looks at the whole table, after it has said how much that is, and for a key asked.
func (f *finder) scan(ctx context.Context, w tablescan.Wanted, c recordkey.Customer) (string, error) {
	if f.noScan {
		return "", errors.New("not among what waits for people, and nothing else was compared; without --no-scan the whole table is scanned")
	}
	total := f.op.tellScan(f.pages)
	if c.Key != "" && !agreed(f.op.env) {
		return "", errors.New("the table was not scanned: records of other callers, and of callers with an issuer or API before the subject, were not compared")
	}
	f.progress.start("items seen")
	defer f.progress.end()
	opt := tablescan.Options{
		Table: f.op.store.Table().Name, Segments: f.segments, PagesPerSecond: f.pages, Seen: func(n int64) { f.progress.at(n, total) },
	}
	var found *tablescan.Found
	var err error
	unknown := recordkey.NoCaller
	if c.Key != "" {
		found, err = recordkey.Search(ctx, f.op.client, f.op.store, opt, c, w.Since)
	} else {
		unknown = "whose attempt never came back: --service names what it may have called"
		w.Load = f.op.store.Load
		found, err = tablescan.Find(ctx, f.op.client, opt, w)
	}
	switch {
	case err != nil:
		return "", err
	case len(found.Records) > 0:
		return only(found.Records)
	}
	if err := f.op.ours(ctx); err != nil {
		return "", err
	}
	if says := found.Untold(unknown); says != "" {
		return "", errors.New("no other record matches; " + plain.Line(says))
	}
	compared := "all records were compared"
	if !w.Since.IsZero() {
		compared = "all records since " + plain.Time(w.Since) + " were compared"
	}
	return "", notFound("no record matches: " + compared)
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

// load reads one record. Without one it ends with exit code 3.
func (op *operator) load(ctx context.Context, pk, otherwise string) (*store.Record, error) {
	rec, err := op.readable(op.store.Load(ctx, pk))
	switch {
	case err == nil && rec == nil:
		err = op.noRecord(ctx, pk, otherwise)
	case errors.Is(err, store.ErrCorrupt):
		err = fmt.Errorf("record %s: %w", plain.Line(pk), err)
	}
	return rec, err
}

// noRecord is the error about a pk that no record has. A message that was no ticket is on the
// list all the same.
func (op *operator) noRecord(ctx context.Context, pk, otherwise string) error {
	if !strings.HasPrefix(pk, state.NoTicket) {
		return notFound(otherwise)
	}
	switch e, err := stream.Listed(ctx, op.store, &store.Record{PK: pk}); {
	case err != nil:
		return err
	case len(e) == 0:
		return notFound("no message is listed under " + plain.Line(pk))
	default:
		return notFound("this is no record, but a message of the tickets' queue: " + plain.Line(e[0].LastErr) + "; " + plain.Command("samekey", "forget", pk) + " takes it off the list")
	}
}

// customer is whom the flags name.
func (f *finder) customer() (c recordkey.Customer, err error) {
	c = recordkey.Customer{Namespace: f.op.namespace, Only: f.op.limited(), Key: f.key, Scope: f.scope, Route: f.route}
	if f.key == "-" {
		if c.Key, err = readLine(f.op.env.stdin); err != nil {
			return c, wrongCallf("no key on standard input: %w", err)
		}
	}
	return c, nil
}
