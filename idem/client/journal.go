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

// maxName is the greatest length of an operation's name, in bytes.
const maxName = 1024

// Journal remembers the key of each operation, so that a restarted process
// continues with the same key after a crash. [FileJournal] is a Journal; a table
// in the caller's database can be another.
//
// A Journal must be safe for concurrent use.
type Journal interface {
	// Begin looks for the entry of e.Operation. If the entry exists, Begin returns it,
	// and found is true. Otherwise, Begin stores e and returns e, and found is false.
	// Once Begin has returned e, no crash may lose e, since the transport then sends
	// the request. If Begin returns an error, the transport sends nothing.
	Begin(ctx context.Context, e Entry) (stored Entry, found bool, err error)
	// Update replaces the entry of e.Operation by e, which has a new Expires, Answered
	// or Status. Update does nothing if there is no entry of e.Operation, or if that
	// entry has another Key. A lost update does no harm while the server remembers the
	// key.
	Update(ctx context.Context, e Entry) error
}

// Entry is what a [Journal] stores about an operation. An Entry contains neither the
// request's body nor the URL.
type Entry struct {
	Operation   string    // the operation's name, from WithOperation
	Key         string    // the key, in the form in which it is sent
	Fingerprint string    // SHA-256 of method, host, URL and body, in hex
	Created     time.Time // time just before the first attempt
	Expires     time.Time // end of the key's lifetime
	Answered    time.Time // time of the final answer; zero without a final answer
	Status      int       // HTTP status of the final answer
}

type operationKey struct{}

// WithOperation returns a context for the requests of one operation, and names the
// operation. Before the first keyed request is sent, the transport enters the operation
// in [Options.Journal]. From then on, even after a crash, every request under this name
// gets the same key. A request with another method, host, URL or body is refused
// ([ErrMismatch]). After the key's lifetime, every request is refused ([ErrExpired]).
// Requests are also refused with ErrExpired while the clock shows a time before the
// operation began. After ErrExpired, find out in another way whether the operation
// happened.
//
// An answer does not end the operation, since the process may crash before the program
// has stored the answer. Call [FileJournal.Done] once the answer is stored. Until Done,
// a repeated request has the same key, and so gets the same answer.
//
// Requests without a key, such as GET, are not affected. A name has 1 to 1024 bytes of
// UTF-8. Each operation in a journal needs a name of its own: "order-42", not "order".
func WithOperation(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, operationKey{}, name)
}

// operationOf returns the name of req's operation. A request with a safe method has no
// operation, even if the request has a key: after a redirect, http.Client may send a
// GET with the context and headers of a named operation's request.
func operationOf(req *http.Request) (name string, named bool) {
	name, named = req.Context().Value(operationKey{}).(string)
	return name, named && !isSafe(req.Method)
}

// operation.remember enters a named operation in the journal. If the journal already
// has the operation, the request gets the key from the journal. The parameter own is
// the key that the caller set. The parameter moved is the key of the request that was
// redirected to o.req, or "" without a redirect.
func (o *operation) remember(own, moved string) error {
	now := o.t.wall()
	o.until = now.Add(o.t.opt.KeyLifetime)
	name, named := operationOf(o.req)
	switch {
	case !named:
		return nil
	case o.t.opt.Journal == nil:
		return fmt.Errorf("%w: Options.Journal is not set", ErrOperation)
	case name == "" || len(name) > maxName || !utf8.ValidString(name):
		return fmt.Errorf("%w: its name must be 1 to %d bytes of UTF-8", ErrOperation, maxName)
	}
	fp, err := fingerprint(o.req, o.body)
	if err != nil {
		return err
	}
	e := Entry{Operation: name, Key: o.key, Fingerprint: fp, Created: now, Expires: o.until}
	e, found, err := o.t.opt.Journal.Begin(o.req.Context(), e)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	here := moved != "" && e.Key == moved // the entry is from the request that was redirected to o.req
	switch {
	case e.Key == "": // a Journal of the caller's own type has returned an empty entry
		return fmt.Errorf("%w: the journal has no key for it", ErrMismatch)
	case own != "" && e.Key != own:
		return fmt.Errorf("%w: with another key", ErrMismatch)
	case !here && e.Fingerprint != fp:
		return ErrMismatch
	}
	// If e.Created is in the future, the clock was ahead when the operation began, or
	// is behind now. In both cases the key's age is unknown.
	behind := now.Add(lifetimeMargin).Before(e.Created)
	if o.until = e.Expires; behind || o.isOver(0) {
		o.key = e.Key
		return fmt.Errorf("%w: operation begun %s, answered: %t", ErrExpired, e.Created.UTC().Format(time.RFC3339), !e.Answered.IsZero())
	}
	o.entry, o.key = e, e.Key
	o.unknown = found && !here
	return nil
}

// operation.note updates the journal if the key's lifetime has changed, or if resp is a
// final answer. resp is nil if the attempt failed.
func (o *operation) note(resp *http.Response) {
	news := o.until.Sub(o.entry.Expires).Abs() > lifetimeMargin // smaller differences come from the server's dates, which are in whole seconds
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
	// Update the entry even if the caller has cancelled the request.
	if err := o.t.opt.Journal.Update(context.WithoutCancel(o.req.Context()), o.entry); err != nil {
		o.tell(o.t.opt.Hooks.JournalFailed, Event{Status: status, Err: err})
	}
}

// fingerprint returns the SHA-256 of a request's method, host, URL and body. Each part
// except the body is preceded by its length. Headers are left out, since a later
// request may have new credentials.
func fingerprint(req *http.Request, b *body) (string, error) {
	h := sha256.New()
	u := *req.URL
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	for _, part := range []string{req.Method, req.Host, u.String()} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // writing to a hash never fails
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
