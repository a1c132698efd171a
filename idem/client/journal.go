package client

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode/utf8"
)

// maxName is the longest name of an operation.
const maxName = 1024

// Journal remembers which key an operation was begun with, so that a process
// that crashed and was started again goes on with the same one. [FileJournal]
// is one; a table in the caller's database can be another.
//
// Its methods are called from many goroutines at once.
type Journal interface {
	// Begin returns the entry of e.Operation and true. Where there is none, it
	// stores e, and returns e and false only when no crash can lose it: the
	// request is sent right after. An error means that nothing is sent.
	Begin(ctx context.Context, e Entry) (stored Entry, found bool, err error)
	// Update replaces the entry of e.Operation by e, which has learnt a new
	// Expires or an answer. Where there is none, or it has another Key by now, it
	// does nothing. Losing an update does no harm.
	Update(ctx context.Context, e Entry) error
}

// Entry is what a [Journal] remembers of an operation. It holds no body and no
// address.
type Entry struct {
	Operation   string    // its name, from WithOperation
	Key         string    // in the form it is sent
	Fingerprint string    // SHA-256 of method, URL and body, in hex
	Created     time.Time // before the first attempt
	Expires     time.Time // end of the key's lifetime
	Answered    time.Time // when a definitive answer came; zero if none did
	Status      int       // of that answer
}

type operationKey struct{}

// WithOperation names the operation that requests with this context carry out.
// The first keyed one is entered in [Options.Journal] before it is sent. From
// then on, also after a crash, every request under this name has the same key
// and must be the same request (method, URL and body), or it is refused
// ([ErrMismatch]). Once the key's lifetime is over it is refused too
// ([ErrExpired]): whether the operation happened must then be found out in
// another way.
//
// An answer does not end the operation, since the process may crash before it
// has put the answer away: until then, asking again gets the same answer. Tell
// the journal when that is done ([FileJournal.Done]).
//
// Requests without a key, such as GET, are not affected. A name is 1 to 1024
// bytes of UTF-8, and unique among those who share the journal: "order-42", not
// "order".
func WithOperation(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, operationKey{}, name)
}

// operationOf is the name of req's operation. A request that changes nothing is
// none, with a key or without: http.Client answers a redirect by such a one.
func operationOf(req *http.Request) (name string, named bool) {
	name, named = req.Context().Value(operationKey{}).(string)
	return name, named && !isSafe(req.Method)
}

// remember enters a named operation in the journal, or finds it there and goes
// on with its key. own is the caller's key, moved the redirected request's.
func (o *operation) remember(own, moved string) (resumed bool, err error) {
	now := o.t.wall()
	o.until = now.Add(o.t.opt.KeyLifetime)
	name, named := operationOf(o.req)
	switch {
	case !named:
		return false, nil
	case o.t.opt.Journal == nil:
		return false, fmt.Errorf("%w: Options.Journal is not set", ErrOperation)
	case name == "" || len(name) > maxName || !utf8.ValidString(name):
		return false, fmt.Errorf("%w: its name must be 1 to %d bytes of UTF-8", ErrOperation, maxName)
	}
	fp, err := fingerprint(o.req, o.body)
	if err != nil {
		return false, err
	}
	e := Entry{Operation: name, Key: o.key, Fingerprint: fp, Created: now, Expires: o.until}
	e, found, err := o.t.opt.Journal.Begin(o.req.Context(), e)
	if err != nil {
		return false, fmt.Errorf("journal: %w", err)
	}
	here := moved != "" && e.Key == moved // the entry is of the request that was redirected here
	switch {
	case own != "" && e.Key != own:
		return false, fmt.Errorf("%w: with another key", ErrMismatch)
	case !here && e.Fingerprint != fp:
		return false, ErrMismatch
	}
	if o.until = e.Expires; o.isOver(0) {
		o.key, o.unknown = e.Key, true
		return false, fmt.Errorf("%w: operation begun %s, answered: %t", ErrExpired, e.Created.UTC().Format(time.RFC3339), !e.Answered.IsZero())
	}
	o.entry, o.key = e, e.Key
	o.unknown = found && !here
	return o.unknown, nil
}

// note enters in the journal what an answer has told; resp is nil for a torn one.
func (o *operation) note(resp *http.Response) {
	news := o.until.Sub(o.entry.Expires).Abs() > lifetimeMargin // the dates are of whole seconds
	settled := resp != nil && o.settles(resp)
	if o.entry.Operation == "" || !news && !settled {
		return
	}
	o.entry.Expires = o.until
	status := 0
	if resp != nil {
		status = resp.StatusCode
	}
	if settled {
		o.entry.Answered, o.entry.Status = o.t.wall(), status
	}
	// The answer is here: remembering it must not depend on the caller's patience.
	if err := o.t.opt.Journal.Update(context.WithoutCancel(o.req.Context()), o.entry); err != nil {
		o.tell(o.t.opt.Hooks.JournalFailed, Event{Status: status, Err: err})
	}
}

// fingerprint tells two requests apart: SHA-256 over method, address and body,
// each with its length before it. Headers are left out, credentials change.
func fingerprint(req *http.Request, b *body) (string, error) {
	h := sha256.New()
	u := *req.URL
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	for _, part := range []string{req.Method, req.Host, u.String()} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash takes everything
		_, _ = io.WriteString(h, part)
	}
	r, err := b.open()
	if err != nil {
		return "", fmt.Errorf("%w: GetBody: %w", ErrBody, err)
	}
	if r != nil {
		defer func() { _ = r.Close() }()
		if _, err := io.Copy(h, r); err != nil {
			return "", fmt.Errorf("reading the request body: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
