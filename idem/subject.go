package idem

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/scope"
)

// subject is what an attempt is about: a request, whose it is, and the record of its key.
type subject struct {
	*core

	req     *Request
	request Request // a place for req, in the same block

	whose store.Identity // the caller; zero for an operator
	scope string
	pk    string
	owner string // the attempt's nonce
	id    string // id of the operation if the operation is new

	print  string       // the fingerprint
	secret string       // id of the secret of print
	input  *store.Input // the part of req to store; nil without Options.Resumable

	bare    bool   // the key's header had no quotes
	barred  *Error // why the request may begin no operation: only its record may answer
	unread  error  // why the fingerprint can't be made: only a record of another scheme may be compared
	beside  *side  // the key's other place while its scope changes; nil without Options.Former
	resumed bool   // run by a completer: there is no client, and only the stored request
	seen    bool   // the store has returned a record of the key, from a read or a refused claim
	accepts bool   // a 202 is allowed
	away    bool   // the subject has changed places with beside, because a record is there
}

// find checks the request and computes its record's key. spaces allows spaces in the key.
func (s *subject) find(ctx context.Context, spaces bool) (err error) {
	e := s.core
	s.req.Handler.Function = cmp.Or(s.req.Handler.Function, e.opt.Function)
	if err := checkKey(s.req.Key, spaces); err != nil {
		return &Error{Op: "key", Err: err}
	}
	if err := checkTexts(s.req); err != nil {
		return &Error{Op: "request", Err: &unlooked{err}}
	}
	s.whose, err = e.claims.callerOf(ctx, s.req)
	if err != nil {
		return e.refusesNobody(ctx, s.req, err)
	}
	s.bar("request", s.req.Unread)
	s.bar("key", e.opt.allowsKey(s.req.Key, s.bare, s.whose))
	s.bar("scope", e.opt.completable(s.req, s.whose))
	if e.opt.Fingerprint.SkipPath {
		s.unread = checkRoute(&e.opt.Fingerprint, s.req, e.claims.route)
		s.bar("scope", s.unread)
	}
	var digest [sha256.Size]byte
	if s.req.Unread == nil {
		if digest, err = e.opt.Fingerprint.digest(s.req); err != nil {
			s.unread = err
			s.bar("fingerprint", err)
		}
	}
	b := scope.Append(make([]byte, 2*nonceSize, 320), s.req.Operation, s.req.Tenant, s.whose)
	at := len(b)
	b = e.partitionKey(b, b[2*nonceSize:at], s.req, &e.claims)
	end := len(b)
	var sum [sha256.Size]byte
	sum, s.secret = e.opt.Fingerprint.sign(digest)
	b = hex.AppendEncode(b, sum[:])
	drawNonces(b[:2*nonceSize])
	text := string(b) // in one block of memory
	s.owner, s.id, s.pk, s.print = text[:nonceSize], text[nonceSize:2*nonceSize], text[at:end], text[end:]
	s.scope = text[2*nonceSize : at]
	if e.besides != nil {
		s.beside, err = e.sideOf(ctx, s.req, e.besides, s.pk)
		return err
	}
	return nil
}

// bar notes why the request may begin no operation: today's rules forbid it, or too little
// time is left. What is said about an operation is said after its record was looked at
// ([before.known]), since an earlier release may have begun it. The first reason counts.
func (s *subject) bar(op string, why error) {
	if why != nil && s.barred == nil {
		s.barred = &Error{Op: op, Err: why}
	}
}

// checkTexts refuses a request whose record would not have the texts that the request has: an
// item's texts are UTF-8, and a record's encryption is bound to them.
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

// turn changes to the key's other place.
func (s *subject) turn() {
	at := side{s.pk, s.scope, s.whose}
	s.pk, s.scope, s.whose = s.beside.pk, s.beside.scope, s.beside.whose
	*s.beside, s.away = at, !s.away
}

// compare reports whether the request is the request that claimed held. An attempt
// without a request of its own may continue with any request.
func (s *subject) compare(held *store.Record) (same bool, err error) {
	switch {
	case s.resumed:
		return true, nil
	case s.req.Unread != nil:
		return false, fmt.Errorf("%w: the request can't be read: %v", ErrIncomparable, s.req.Unread) //nolint:errorlint // as below
	case s.unread != nil && held.Scheme == s.scheme:
		return false, fmt.Errorf("%w: %v", ErrIncomparable, s.unread) //nolint:errorlint // not the error: the answer would be another one
	case held.Secret == s.secret && held.Scheme == s.scheme:
		return hmac.Equal([]byte(held.Fingerprint), []byte(s.print)), nil
	}
	return s.opt.Fingerprint.matches(held, s.req)
}

// fail is an error that names the record.
func (s *subject) fail(op string, err error) *Error {
	return &Error{Op: op, Record: redact.Record(s.pk), Err: err}
}

// phaseError is an error that a handler may return.
func (s *subject) phaseError(op string, err error) *Error {
	e := s.fail(op, err)
	e.phase = true
	return e
}

// unavailable wraps a store's error that prevents the handler from running.
func (s *subject) unavailable(op string, err error) error {
	if errors.Is(err, ErrCorrupt) {
		return s.fail(op, err)
	}
	return s.fail(op, fmt.Errorf("%w: %w", ErrUnavailable, err))
}

// cleaned drops headers that would split the answer, and logs a warning.
func (s *subject) cleaned(ctx context.Context, resp *Response) {
	if dropped := clean(resp); dropped != nil {
		s.log.WarnContext(ctx, "response header with control characters left out", "record", redact.Record(s.pk), "headers", dropped)
	}
}
