package records

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// NotFound is the error of a search that has compared everything and found nothing.
type NotFound string

func (n NotFound) Error() string { return string(n) }

// Unclear is the error for a name or key that is invalid, or that several records
// match.
type Unclear string

func (u Unclear) Error() string { return string(u) }

// Finder finds the record that a person means. Client, Store and Scanning are required.
type Finder struct {
	Client   *dynamodb.Client
	Store    *dynamo.Store
	Services []string  // services that an abandoned attempt may have called, each as SERVICE or SERVICE/STEP
	Since    time.Time // search only records whose last attempt began at this time or later
	Scan     ScanOptions
	NoScan   bool
	// Scanning is called before a scan of the whole table. The argument is the customer if
	// the search is for a customer's key; otherwise it is the zero Customer. If Scanning
	// returns an error, the search ends.
	Scanning func(of Customer) error
	// Nothing is called if a scan finds no record. If Nothing returns an error, Ref and
	// Key return that error instead of a NotFound.
	Nothing func(context.Context) error
}

var (
	isOperation = regexp.MustCompile(`^[A-Z2-7]{26}$`)
	isJob       = regexp.MustCompile(`^([A-Z2-7]{26})\.\d+\.\d+$`)
	isDerived   = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	isShort     = regexp.MustCompile(`^[A-Za-z0-9_-]{8}$`)
)

// IsJob reports whether a text is the id of a job.
func IsJob(text string) bool { return isJob.MatchString(text) }

// Ref returns the record that a text names. The text is a partition key, the id of an
// operation or a job, a derived key, or the short name in logs. If the error matches
// [store.ErrSealed], Ref also returns the record, as [dynamo.Store.Load] does. If ref
// is invalid or names several records, the error is an [Unclear]. If all records were
// compared and none matches, the error is a [NotFound]. If none matches and some
// records could not be compared, the error says so, and is no NotFound.
func (f *Finder) Ref(ctx context.Context, ref string) (*store.Record, error) {
	if strings.Count(ref, "#") == 2 {
		return f.load(ctx, ref, "no record "+plain.Line(ref))
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
		if pk, err = f.scan(ctx, w, Customer{}); err != nil {
			return nil, err
		}
	}
	return f.found(ctx, pk, ref)
}

// Key returns the record of a customer's key. It returns the same errors as
// [Finder.Ref].
func (f *Finder) Key(ctx context.Context, c Customer) (*store.Record, error) {
	if err := c.Check(ctx); err != nil {
		return nil, Unclear(err.Error()) // a key that no handler accepts
	}
	found, err := FindKey(ctx, f.Store, c, stream.NewWaiting(f.Client, f.Store).All(ctx))
	if err != nil {
		return nil, err
	}
	var pk string
	if len(found) == 0 {
		pk, err = f.scan(ctx, wanted{Since: f.Since}, c)
	} else {
		pk, err = only(found)
	}
	if err != nil {
		return nil, err
	}
	return f.load(ctx, pk, "the record was deleted after the search found it")
}

// This method loads the record that the index or a scan has found for the name ref. If
// another operation has claimed the key since the search, the error is a NotFound.
func (f *Finder) found(ctx context.Context, pk, ref string) (*store.Record, error) {
	rec, err := f.load(ctx, pk, "the record was deleted after the search found it")
	if rec == nil {
		return nil, err
	}
	ref = operationOf(ref)
	if is, _ := derives(rec, ref, f.Services...); !is && ref != rec.ID && ref != redact.Record(rec.PK) {
		return nil, NotFound(fmt.Sprintf("after the search, another operation claimed the key: the record now belongs to operation %s, and %s is not an id of this operation", plain.Line(rec.ID), plain.Line(ref)))
	}
	return rec, err
}

// operationOf returns the operation's id if ref is the id of a job, and otherwise ref.
func operationOf(ref string) string {
	if m := isJob.FindStringSubmatch(ref); m != nil {
		return m[1]
	}
	return ref
}

// Finder.wanted returns two filters for the record that ref names. The first filter is
// for a scan. The second filter is for entries of the index. For a derived key the
// second filter is nil, because entries contain no derived keys.
func (f *Finder) wanted(ref string) (w wanted, in func(stream.Entry) bool, _ error) {
	w.Since = f.Since
	ref = operationOf(ref)
	switch {
	case isOperation.MatchString(ref):
		w.ID = ref
		return w, func(e stream.Entry) bool { return e.ID == ref }, nil
	case isShort.MatchString(ref):
		w.Short = ref
		return w, func(e stream.Entry) bool { return e.Record == ref }, nil
	case isDerived.MatchString(ref):
		w.Match = func(r *store.Record) (is, known bool) { return derives(r, ref, f.Services...) }
		return w, nil, nil
	}
	return w, nil, Unclear(fmt.Sprintf("%q is not a partition key, a short name, a derived key, or the id of an operation or a job; to search for a customer's key, use --key", plain.Line(ref)))
}

// Finder.waiting looks for a record in the index of waiting operations.
func (f *Finder) waiting(ctx context.Context, in func(stream.Entry) bool) (string, error) {
	if in == nil {
		return "", nil
	}
	for e, err := range stream.NewWaiting(f.Client, f.Store).All(ctx) {
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

// If found has one record, the result is the record's partition key. If found has
// several records, the result is an error that lists them.
func only(found []*store.Record) (string, error) {
	if len(found) == 1 {
		return found[0].PK, nil
	}
	says := []string{fmt.Sprintf("%d records match; give the partition key of one:", len(found))}
	for _, r := range found {
		says = append(says, plain.Line(strings.TrimSpace("  "+r.PK+"  "+r.Scope+"  "+r.Route)))
	}
	return "", Unclear(strings.Join(says, "\n"))
}

func (f *Finder) scan(ctx context.Context, w wanted, c Customer) (string, error) {
	if f.NoScan {
		return "", errors.New("not found in the index of waiting operations, and --no-scan prevents a search of the whole table")
	}
	if err := f.Scanning(c); err != nil {
		return "", err
	}
	opt := f.Scan
	opt.Table = f.Store.Table().Name
	var found *Found
	var err error
	unknown := NoCaller
	if c.Key != "" {
		found, err = Search(ctx, f.Client, f.Store, opt, c, w.Since)
	} else {
		unknown = "with an abandoned attempt: give --service for each service that the attempt may have called"
		w.Load = f.Store.Load
		found, err = find(ctx, f.Client, opt, w)
	}
	switch {
	case err != nil:
		return "", err
	case len(found.Records) > 0:
		return only(found.Records)
	}
	if f.Nothing != nil {
		if err := f.Nothing(ctx); err != nil {
			return "", err
		}
	}
	if says := found.Untold(unknown); says != "" {
		return "", errors.New("no record matches, but the search is incomplete: " + plain.Line(says))
	}
	compared := "all records were compared"
	if !w.Since.IsZero() {
		compared = "all records since " + plain.Time(w.Since) + " were compared"
	}
	return "", NotFound("no record matches: " + compared)
}

func (f *Finder) load(ctx context.Context, pk, otherwise string) (*store.Record, error) {
	rec, err := f.Store.Load(ctx, pk)
	switch {
	case err == nil && rec == nil:
		return nil, f.noRecord(ctx, pk, otherwise)
	case errors.Is(err, store.ErrCorrupt):
		return nil, fmt.Errorf("record %s: %w", plain.Line(pk), err)
	}
	return rec, err
}

// noRecord returns the error for a partition key that no record has. If pk names a
// message in the tickets' queue that isn't a ticket, the error describes the message.
func (f *Finder) noRecord(ctx context.Context, pk, otherwise string) error {
	if !strings.HasPrefix(pk, state.NoTicket) {
		return NotFound(otherwise)
	}
	switch e, err := stream.Listed(ctx, f.Store, &store.Record{PK: pk}); {
	case err != nil:
		return err
	case len(e) == 0:
		return NotFound("samekey list shows no message " + plain.Line(pk))
	default:
		return NotFound("this is not a record, but a message of the tickets' queue: " + plain.Line(e[0].LastErr) + "; " + plain.Command("samekey", "forget", pk) + " removes the message from samekey list")
	}
}
