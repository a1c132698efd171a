package client

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/base/defaults"
)

// maxWait is the greatest allowed MaxDelay: more than anybody needs, but too small for
// an overflow.
const maxWait = 365 * 24 * time.Hour

// Options are the settings of a [Transport]. A field that is zero gets its default.
type Options struct {
	// KeyHeader is the request header that carries the key. If the caller has set this
	// header, the transport sends the caller's value. Default: Idempotency-Key.
	KeyHeader string
	// QuoteKey makes the transport send its generated keys in quotes, as strings of RFC
	// 9651. Some servers accept no other form, for example servers with the preset
	// idem.IETF.
	QuoteKey bool
	// Methods are the HTTP methods whose requests get a key. Requests with idempotent
	// methods (GET, HEAD, OPTIONS, TRACE, PUT, DELETE) need no key to be retried. Add
	// DELETE or PUT if the server takes keys for them: a server with the preset
	// idem.Stripe takes keys for DELETE. If the list is empty but not nil, the
	// transport makes no keys, and only callers set keys. Default: POST and PATCH, as
	// in package idem.
	Methods []string
	// KeyLifetime is how long the server remembers a key after the first attempt. For
	// an operation in the journal, the first attempt may be of an earlier request. The
	// server's header Idempotency-Expires takes precedence. No retry is sent after the
	// lifetime. Default: 24 hours.
	KeyLifetime time.Duration

	// MaxRetries is how often a request may be sent again after the first attempt. A
	// request is retried if there is no answer, or if the answer is 409 (an earlier
	// attempt may still be running), 429 or 5xx. The server's header
	// Stripe-Should-Retry, "true" or "false", overrules a status of 400 or above. An
	// answer with a Retry-After of more than a minute is returned at once. For a keyed
	// request, retries after a 409 with a Retry-After don't count towards MaxRetries
	// until the waits before these retries exceed a minute in total. A negative value
	// means no retries. Default: 2.
	MaxRetries int
	// InitialDelay and MaxDelay determine the wait before retry n. With d =
	// min(InitialDelay * 2^(n-1), MaxDelay), the wait is a random time from d/2 to d.
	// If that time is shorter than InitialDelay, the wait is InitialDelay. Defaults:
	// 0.5 seconds and 5 seconds.
	InitialDelay, MaxDelay time.Duration
	// AttemptTimeout is the time limit of an attempt. The time includes sending the
	// request's body and receiving the answer's headers. For a keyed request, the time
	// also includes reading up to 1 MiB of the answer's body. A timed-out attempt is
	// retried. The error of a timed-out attempt matches os.ErrDeadlineExceeded.
	// Default: no limit, so only the request's context ends an attempt that hangs.
	AttemptTimeout time.Duration

	// NoBudget removes the budget for retries, so that only MaxRetries limits retries.
	// By default, all requests of a transport share one budget: each request adds a
	// tenth of a retry, and each second adds ten retries, up to 100 retries. When the
	// budget is used up, the transport returns a failure instead of retrying, so that
	// clients don't keep a struggling server down.
	NoBudget  bool
	perSecond float64 // retries that the budget allows each second

	maxBuffer int64 // greatest length of a body without GetBody that is kept for retries, in bytes; negative: none
	maxAnswer int64 // how many bytes of a keyed request's answer are read ahead; negative: none

	// Journal stores the keys of operations that [WithOperation] names, so that the
	// keys outlive this process. Default: no journal; a request of a named operation is
	// then refused ([ErrOperation]).
	Journal Journal
	// Hooks are called as the transport works, for metrics and logs.
	Hooks Hooks
}

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

// isNilPointer reports whether v contains a nil pointer.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
