package idem

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// An ask value holds the request of an attempt, the request's key and caller, and the
// place of the key's record. It doesn't change after the claim.
type ask struct {
	core *core

	req      *Request
	reqValue Request // memory for req, allocated together with ask

	home  place  // where the key is claimed
	other *place // where the record is if an earlier or a later release of the program claimed the key; nil without Options.Former

	print     string       // the fingerprint
	secret    string       // id of the secret that signed the fingerprint
	owner, id string       // two nonces that the first claim writes: the record's owner, and the id of the new operation
	input     *store.Input // the part of req to store; nil without Options.Resumable

	bare       bool   // the key's header had no quotes
	served     bool   // the request came through Serve or ServeStatus, so the answer may be a 202 and must have a coding that the client accepts, and the key may contain spaces
	unattended bool   // run by a completer from the stored request, without a client
	barred     *Error // why the request must not begin an operation; an existing record may still answer it
	unhashed   error  // why this engine's scheme can't make the fingerprint; the request can still be compared with a record of another scheme
}

// ask.find checks the request, and computes the partition key of its record. The result
// inside says whether ctx already belongs to the key's operation.
func (q *ask) find(ctx context.Context) (inside bool, err error) {
	e := q.core
	q.req.Handler.Function = cmp.Or(q.req.Handler.Function, e.opt.Function)
	if err := checkKey(q.req.Key, q.served); err != nil {
		return false, &Error{Op: "key", Err: err}
	}
	if err := checkTexts(q.req); err != nil {
		return false, &Error{Op: "request", Err: &recordUnread{err}}
	}
	whose, err := e.names.claimsBy.callerOf(ctx, q.req)
	if err != nil {
		return false, e.refusesNobody(ctx, q.req, err)
	}
	q.bar("request", q.req.Unread)
	q.bar("key", e.opt.allowsKey(q.req.Key, q.bare, whose))
	q.bar("scope", e.opt.checkCaller(q.req, whose))
	var digest [sha256.Size]byte
	if q.req.Unread == nil {
		if digest, err = e.opt.Fingerprint.digest(q.req); err != nil {
			q.unhashed = err
			q.bar("fingerprint", err)
		}
	}
	var sum [sha256.Size]byte
	sum, q.secret = e.opt.Fingerprint.sign(digest)
	b := make([]byte, 2*nonceSize, 320)
	drawNonces(b)
	b = scope.Append(b, q.req.Operation, q.req.Tenant, whose)
	at := len(b)
	b = e.names.partitionKey(b, b[2*nonceSize:at], q.req, &e.names.claimsBy)
	end := len(b)
	b = hex.AppendEncode(b, sum[:])
	text := string(b) // one allocation for all texts
	q.owner, q.id, q.print = text[:nonceSize], text[nonceSize:2*nonceSize], text[end:]
	q.home = place{pk: text[at:end], scope: text[2*nonceSize : at], whose: whose}
	if q.other, err = e.names.other(ctx, q.req, q.home.pk); err != nil {
		return false, err
	}
	return q.inside(ctx)
}

// ask.bar sets the reason why the request must not begin an operation, for example that
// too little time is left. Only the first reason is kept. Before the engine returns the
// reason, it reads the record ([claiming.known]), because an existing record may still
// answer the request.
func (q *ask) bar(op string, why error) {
	if why != nil && q.barred == nil {
		q.barred = &Error{Op: op, Err: why}
	}
}

// checkTexts returns an error if a text of the request isn't UTF-8, because the table
// would store a different text. Encryption binds a record to its texts, so nobody could
// decrypt a record with a different text.
func checkTexts(r *Request) error {
	for _, one := range [...]struct{ what, text string }{
		{"operation", r.Operation}, {"tenant", r.Tenant}, {"route", r.Route}, {"function", r.Handler.Function}, {"handler", r.Handler.Name}, {"kind of caller", r.Identity.Kind},
	} {
		if !utf8.ValidString(one.text) {
			return fmt.Errorf("%w: the name of its %s is not UTF-8: %q", ErrRequest, one.what, one.text)
		}
	}
	return nil
}

// checkCaller returns an error if the program named the caller of a request that will
// be stored for a completer, because in a completer's run the handler would not know
// this caller. If CallerFromOp is set, the handler takes the caller from Op.Caller, and
// checkCaller returns nil.
func (o *Options) checkCaller(r *Request, caller store.Identity) error {
	if caller.Kind != scope.Program || !o.Resumable || o.CallerFromOp || r.Redelivered {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrScope, callerFromOp)
}

const callerFromOp = "Resumable with Scope or OneScope: a completer has no client's request, and so no token that a handler could check; " +
	"let the handlers take the caller from Op.Caller, and set Options.CallerFromOp"

// nonceSize is the length of a text from rand.Text, which has at least 128 random bits.
const nonceSize = 26

// drawNonces fills b with random letters and digits as rand.Text does. It reads the random
// bytes for all nonces at once.
func drawNonces(b []byte) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	_, _ = rand.Read(b) // never fails
	for i, r := range b {
		b[i] = alphabet[int(r)%len(alphabet)]
	}
}

// ask.inside reports whether ctx belongs to the key's operation, or to an operation nested
// in it. Without this check, a handler that is wrapped twice would never run: the inner
// wrapper would refuse the request as in flight. If ctx belongs to the operation, but the
// request differs, the error is ErrMismatch; if it can't be compared, ErrIncomparable.
func (q *ask) inside(ctx context.Context) (bool, error) {
	for op, _ := FromContext(ctx); op != nil; op = op.outer {
		if op.over.Load() || !q.meets(op.run.ask, op.run.gate.pk) || !sameStore(op.run.ask.core.store, q.core.store) {
			continue
		}
		same, err := q.compare(op.run.record())
		switch {
		case err != nil:
			return true, recordError("fingerprint", q.home.pk, err)
		case !same:
			return true, recordError("inside", q.home.pk, ErrMismatch)
		}
		return true, nil
	}
	return false, nil
}

// ask.compare reports whether q has the same request as the record found, which has the
// same key. A completer's attempt runs the record's own request, so any record matches.
func (q *ask) compare(found *store.Record) (same bool, err error) {
	switch {
	case q.unattended:
		return true, nil
	case q.req.Unread != nil:
		return false, fmt.Errorf("%w: the request can't be read: %v", ErrIncomparable, q.req.Unread) //nolint:errorlint // as below
	case q.unhashed != nil && found.Scheme == q.core.scheme:
		return false, fmt.Errorf("%w: %v", ErrIncomparable, q.unhashed) //nolint:errorlint // not wrapped: the wrapped error would change the answer
	case found.Secret == q.secret && found.Scheme == q.core.scheme:
		return hmac.Equal([]byte(found.Fingerprint), []byte(q.print)), nil
	}
	return q.core.opt.Fingerprint.matches(found, q.req)
}

// ask.judge returns the verdict about the record found. If the key has no record, found
// is nil and the verdict is Claimable. The parameter owner is the nonce of the attempt
// that asks.
func (q *ask) judge(found *store.Record, owner string) (state.Verdict, error) {
	if found == nil || found.State == store.None {
		return state.Claimable, nil
	}
	if state.Corrupt(found) {
		return 0, recordError("claim", found.PK, fmt.Errorf("%w: state %q, without what belongs to it", ErrCorrupt, found.State))
	}
	now := q.core.opt.Now()
	same, err := q.compare(found)
	if err != nil && found.Owner != owner && !state.Free(found, now) { // the verdict needs the comparison, which failed
		e := recordError("fingerprint", found.PK, err)
		e.RetryAfter = untilDeployed
		return 0, e
	}
	return state.Judge(found, owner, same, now), nil
}

// sameStore reports whether a and b are the same store. Stores of an incomparable type
// count as different.
func sameStore(a, b store.Store) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}
