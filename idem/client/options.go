package client

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/base/defaults"
)

// maxWait is beyond any sensible value, but far from an overflow.
const maxWait = 365 * 24 * time.Hour

// Options are a [Transport]'s settings. The zero value of each field means its
// default.
type Options struct {
	// KeyHeader is the request header that carries the key. A request that has this
	// header keeps its value. Default: Idempotency-Key.
	KeyHeader string
	// QuoteKey sends generated keys as RFC 9651 strings, in quotes, for servers that
	// accept no other form (idem.IETF).
	QuoteKey bool
	// Methods are the HTTP methods whose requests get a key. Requests with
	// idempotent methods (GET, HEAD, OPTIONS, TRACE, PUT, DELETE) are retried
	// without a key; add DELETE or PUT if the server requires a key for them
	// (idem.Stripe). With an empty list only callers make keys. Default: POST and
	// PATCH, as package idem keys them.
	Methods []string
	// KeyLifetime is how long the server remembers a key, counted from the first
	// attempt of this request, or of its operation in the journal. The server's
	// Idempotency-Expires takes precedence. No retry is sent after the lifetime.
	// Default: 24 hours.
	KeyLifetime time.Duration

	// MaxRetries is how often a request is sent again, after the first attempt: after 409,
	// since the original may still be running, 429 and 5xx. The server overrules this by
	// the header Stripe-Should-Retry, "true" or "false". An answer with a Retry-After of
	// more than a minute is returned at once. A keyed request whose answer is 409, since
	// the server is still working on the request, is repeated for a minute in total, in
	// addition to MaxRetries. Negative: never. Default: 2.
	MaxRetries int
	// InitialDelay and MaxDelay determine the wait before retry n: a random time
	// between half and all of min(InitialDelay * 2^(n-1), MaxDelay), but at least
	// InitialDelay. Defaults: 0.5 seconds and 5 seconds.
	InitialDelay, MaxDelay time.Duration
	// AttemptTimeout is the time limit of an attempt: from sending the request's
	// body to the answer's headers and, for a keyed request, as much of the answer's
	// body as is read ahead, 1 MiB. A timed-out attempt is retried; its error matches
	// os.ErrDeadlineExceeded. Default: none, so only the request's context ends an
	// attempt that hangs.
	AttemptTimeout time.Duration

	// NoBudget limits retries by MaxRetries only. Default: the retries of the whole
	// transport are at most a tenth of its requests plus ten a second, with the budget of
	// ten seconds saved up. When the budget is used up, failures are returned instead of
	// retried, so that clients don't keep a struggling server down.
	NoBudget  bool
	perSecond float64 // retries a second of the budget

	maxBuffer int64 // bytes of a body without GetBody that are held for retries; negative: none
	maxAnswer int64 // bytes of the answer to a keyed request that are read ahead; negative: none

	// Journal remembers the keys of operations named by [WithOperation] beyond this
	// process. Default: none; a named operation is then refused.
	Journal Journal
	// Hooks are called as the transport works, for metrics and logs.
	Hooks Hooks
}

// withDefaults returns o with every zero field set.
func (o Options) withDefaults() Options {
	setDefault(&o.KeyHeader, "Idempotency-Key")
	setDefault(&o.KeyLifetime, 24*time.Hour)
	setDefault(&o.MaxRetries, 2)
	setDefault(&o.InitialDelay, 500*time.Millisecond)
	setDefault(&o.MaxDelay, 5*time.Second)
	setDefault(&o.maxBuffer, 4<<20)
	setDefault(&o.maxAnswer, 1<<20)
	setDefault(&o.perSecond, 10)
	if o.Methods == nil {
		o.Methods = defaults.Methods()
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports every setting that can't work.
func (o *Options) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(isToken(o.KeyHeader), "KeyHeader %q: not a header name", o.KeyHeader)
	check(o.KeyLifetime > lifetimeMargin, "KeyLifetime %v: more than %v", o.KeyLifetime, lifetimeMargin)
	check(o.InitialDelay > 0, "InitialDelay %v: above zero", o.InitialDelay)
	check(o.MaxDelay >= o.InitialDelay && o.MaxDelay <= maxWait, "MaxDelay %v: at least InitialDelay, %v, at most %v", o.MaxDelay, o.InitialDelay, maxWait)
	check(o.AttemptTimeout >= 0, "AttemptTimeout %v: not negative", o.AttemptTimeout)
	check(!isNilPointer(o.Journal), "Journal is a nil pointer")
	for _, m := range o.Methods {
		check(isToken(m) && m == strings.ToUpper(m) && !isSafe(m), "Methods: %q is not a method that changes something, in upper case", m)
	}
	return errors.Join(errs...)
}

// isNilPointer also finds a nil pointer in an interface.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
