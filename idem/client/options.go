package client

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"
)

// Defaults of [Options].
const (
	DefaultKeyHeader         = "Idempotency-Key"
	DefaultKeyLifetime       = 24 * time.Hour
	DefaultMaxRetries        = 2
	DefaultInitialDelay      = 500 * time.Millisecond
	DefaultMaxDelay          = 5 * time.Second
	DefaultMaxRetryAfter     = time.Minute
	DefaultShouldRetryHeader = "Stripe-Should-Retry"
	DefaultMaxBuffer         = 4 << 20
	DefaultMaxAnswer         = 1 << 20
	DefaultBudgetRatio       = 0.1
	DefaultBudgetPerSecond   = 10
)

// More than anyone can mean, and far from overflowing.
const (
	maxBytes = 1 << 50
	maxWait  = 365 * 24 * time.Hour
)

// Options are a [Transport]'s settings. The zero value of each field means its
// default.
type Options struct {
	// KeyHeader is the request header that carries the key. A request that has
	// it keeps its value. Default: DefaultKeyHeader.
	KeyHeader string
	// QuoteKey sends the keys made here as RFC 9651 strings, in quotes, for
	// servers that take nothing else (idem.IETF).
	QuoteKey bool
	// Methods are the HTTP methods whose requests get a key. The idempotent
	// ones (GET, HEAD, OPTIONS, TRACE, PUT, DELETE) are retried without; add
	// DELETE or PUT where the server wants a key on them (idem.Stripe). An empty
	// list means that only callers make keys. Default: POST and PATCH.
	Methods []string
	// KeyLifetime is how long the server remembers a key, counted from the
	// first attempt of this request, or of its operation in the journal. What the
	// server itself says in Idempotency-Expires counts more. No retry is sent
	// after it. Default: DefaultKeyLifetime.
	KeyLifetime time.Duration

	// MaxRetries is how often a request is sent again, so it is sent at most
	// once more than that. Negative: never. Default: DefaultMaxRetries.
	MaxRetries int
	// InitialDelay and MaxDelay bound the wait before retry n: a random time
	// between half and all of min(InitialDelay * 2^(n-1), MaxDelay), but no less
	// than InitialDelay. Defaults: DefaultInitialDelay and DefaultMaxDelay.
	InitialDelay, MaxDelay time.Duration
	// MaxRetryAfter is the longest Retry-After that is waited for. An answer
	// that asks for more is returned at once. A keyed request that is told by 409
	// to come again, since it is still being worked on, does so for as long in
	// all, besides MaxRetries. Default: DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration
	// AttemptTimeout ends an attempt that has no answer by then: its headers,
	// and for a keyed request also as much of its body as MaxAnswer says. It
	// includes sending the request's body. A timed-out attempt is retried.
	// Default: none, so only the request's context ends an attempt that hangs.
	AttemptTimeout time.Duration

	// Retried says which statuses are retried, of those from 400 on.
	// Default: DefaultRetried.
	Retried func(status int) bool
	// ShouldRetryHeader is a response header by which the server overrules
	// Retried, with "true" or "false". Default: DefaultShouldRetryHeader.
	ShouldRetryHeader string
	// KeepNotFound hands over the 404 of a repeated DELETE as it is, instead of
	// a 204 (see the package's documentation).
	KeepNotFound bool

	// MaxBuffer is how many bytes of a request body that can't be rewound (no
	// GetBody) are kept to send it again. A keyed request with a longer one is
	// refused; one without a key is sent once. Negative: none. Default:
	// DefaultMaxBuffer.
	MaxBuffer int64
	// MaxAnswer is how many bytes of the answer to a keyed request are read
	// before it is handed over, so that an answer that tears on the way is
	// asked for again; what is longer is streamed from there. Event streams are
	// never read ahead. Negative: nothing is. Default: DefaultMaxAnswer.
	MaxAnswer int64

	// BudgetRatio and BudgetPerSecond bound the retries of the whole transport:
	// so many for each request, plus so many a second, with ten seconds' worth
	// saved up. When they are used up, failures are returned instead of
	// retried, so that clients don't keep a struggling server down. Defaults:
	// DefaultBudgetRatio and DefaultBudgetPerSecond.
	BudgetRatio, BudgetPerSecond float64
	// NoBudget bounds retries by MaxRetries only.
	NoBudget bool

	// Journal remembers the keys of operations named by [WithOperation] beyond
	// this process. Default: none; a named operation is then refused.
	Journal Journal
	// Hooks are told what happens, for metrics and logs.
	Hooks Hooks
}

// withDefaults returns o with every zero field set.
func (o Options) withDefaults() Options {
	setDefault(&o.KeyHeader, DefaultKeyHeader)
	setDefault(&o.KeyLifetime, DefaultKeyLifetime)
	setDefault(&o.MaxRetries, DefaultMaxRetries)
	setDefault(&o.InitialDelay, DefaultInitialDelay)
	setDefault(&o.MaxDelay, DefaultMaxDelay)
	setDefault(&o.MaxRetryAfter, DefaultMaxRetryAfter)
	setDefault(&o.ShouldRetryHeader, DefaultShouldRetryHeader)
	setDefault(&o.MaxBuffer, DefaultMaxBuffer)
	setDefault(&o.MaxAnswer, DefaultMaxAnswer)
	setDefault(&o.BudgetRatio, DefaultBudgetRatio)
	setDefault(&o.BudgetPerSecond, DefaultBudgetPerSecond)
	if o.Methods == nil {
		o.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if o.Retried == nil {
		o.Retried = DefaultRetried
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
	check(isToken(o.ShouldRetryHeader), "ShouldRetryHeader %q: not a header name", o.ShouldRetryHeader)
	check(o.KeyLifetime > lifetimeMargin, "KeyLifetime %v: more than %v", o.KeyLifetime, lifetimeMargin)
	check(o.InitialDelay > 0, "InitialDelay %v: above zero", o.InitialDelay)
	check(o.MaxDelay >= o.InitialDelay && o.MaxDelay <= maxWait, "MaxDelay %v: at least InitialDelay, %v, at most %v", o.MaxDelay, o.InitialDelay, maxWait)
	check(o.MaxRetryAfter > 0 && o.MaxRetryAfter <= maxWait, "MaxRetryAfter %v: above zero, at most %v", o.MaxRetryAfter, maxWait)
	check(o.AttemptTimeout >= 0, "AttemptTimeout %v: not negative", o.AttemptTimeout)
	check(o.BudgetRatio > 0 && o.BudgetRatio <= 1, "BudgetRatio %v: above zero, at most one", o.BudgetRatio)
	check(o.BudgetPerSecond > 0 && o.BudgetPerSecond <= 1e9, "BudgetPerSecond %v: above zero", o.BudgetPerSecond)
	check(o.MaxBuffer < maxBytes && o.MaxAnswer < maxBytes, "MaxBuffer %d, MaxAnswer %d: below %d", o.MaxBuffer, o.MaxAnswer, int64(maxBytes))
	check(!isNilPointer(o.Journal), "Journal is a nil pointer")
	for _, m := range o.Methods {
		check(isToken(m) && m == strings.ToUpper(m) && !isSafe(m), "Methods: %q is not a method that changes something, in upper case", m)
	}
	return errors.Join(errs...)
}

// isNilPointer finds the nil pointer in an interface, which == nil doesn't.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
