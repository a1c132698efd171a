package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

const maxName = 256 // longest name of a function or handler, in bytes

// Options are an engine's settings. The zero value is the default contract.
// [Stripe], [StripeV1], [IETF], [ACP] and [UCP] set other contracts:
//
//	idem.New(store, idem.Stripe, func(o *idem.Options) { o.Retention = 72 * time.Hour })
//
// Routes that need other settings use another engine on the same store.
type Options struct {
	// Mode decides whether requests are protected, observed or left alone. Use modes
	// other than ModeEnforce only for handlers without phases. In these modes a phase
	// may begin without a record, and is then refused ([ErrUnprotected]). Default:
	// ModeEnforce.
	Mode Mode

	// Namespace separates applications that share a table. Every partition key contains the
	// namespace, so after a change of Namespace all earlier keys count as new. Namespace
	// has at most 64 letters, digits, "-", "_" and ".". Default: none.
	Namespace string

	// Function names the program that runs this engine's operations. Each record stores
	// the name. Only a completer that acts for this function finishes the operation
	// without the client ([Engine.Resume]), so Resumable needs a Function. If two
	// aliases of a function are separate applications on one table, give them different
	// names. Function has at most 256 bytes. Default: the environment variable
	// AWS_LAMBDA_FUNCTION_NAME, which Lambda sets; outside of Lambda, no name.
	Function string

	// Retention is how long the answer of a finished operation is replayed, and how
	// long the key of an unfinished operation is remembered. But if a phase has
	// committed, a call may have been made, or the request is stored, the key is
	// remembered until the operation ends. Retention must exceed the time for which
	// clients retry, because a later retry runs anew. Retention is at least an hour.
	// Default: 24 hours.
	Retention time.Duration

	// Lease is how long an attempt holds the key if the attempt's context has no
	// deadline. If the context has a deadline, the lease ends at the deadline. If a
	// handler works past its deadline and is not killed (on Lambda Managed Instances,
	// in a container, under net/http), the engine renews the lease. Each renewal costs
	// one write, and extends the lease by the duration in this field. The renewals stop
	// 15 minutes after the deadline. Then the next attempt can take over, even if the
	// handler is still running. Lease must be more than half a second. Default: 30
	// seconds.
	Lease time.Duration

	// LeaseMargin is added to every lease, since a timeout may kill a process late, and
	// clocks differ. LeaseMargin is at least a second. Default: 2 seconds.
	LeaseMargin time.Duration

	// Methods are the HTTP methods that use keys. Requests with other methods pass
	// unchanged. If such a request carries a key, the answer's header Idempotency-Status
	// says that the key was ignored. Default: POST and PATCH, as in package idem/client.
	// Add PUT and DELETE if their handlers do more than set a state.
	Methods []string

	// KeyHeader is the name of the header with the key, for contracts that use another
	// name ("PayPal-Request-Id"). Answers echo the key under this name, and errors
	// mention the name. New refuses this header in the options that add headers to the
	// fingerprint or to records. Default: the constant [KeyHeader].
	KeyHeader string

	// Key decides how to treat a request without a key. Default: KeyRequired.
	Key KeyMode
	// MinKey is the least length of a new operation's key, from 1 to 255 bytes. A
	// shorter key that already has a record is still served. Default: 1; for callers
	// under [OneScope], 22.
	MinKey int

	// KeyFrom finds the key in another place than the header, such as in a form or in a
	// body. If KeyFrom finds a key, the engine ignores a key in the header, because a
	// browser may add a key header of its own to each submission of a form. If KeyFrom
	// returns [ErrKeyMissing], the engine uses the header. But if [Request.Unread] is
	// set, the engine refuses such a request, because the key may be in the part that
	// was not read. If KeyFrom returns another error, the engine refuses the request
	// and doesn't read its record. KeyFrom may set [Request.Same] and [Request.Unread].
	KeyFrom func(*Request) (string, error)

	// InFlight decides how to answer a request while another attempt holds its key.
	// Default: InFlightRefuse.
	InFlight InFlightMode
	// StatusURL is the status resource's URL up to the key, and ends in "/". Give the
	// full URL if the API's URLs have a stage or a base path; otherwise a path is
	// enough. InFlightAccept needs StatusURL. See [Engine.ServeStatus].
	StatusURL string

	// Scope finds the caller of a request that has neither a [Request.Scope] nor a
	// [Request.Source]. Use only verified facts, because clients that can choose their
	// scope can read other callers' answers. The engine adds the tenant. Default: the
	// request's verified Identity; without an Identity, such a request is refused
	// (ErrScope) if it has a key, unless [OneScope] is set.
	//
	// If the request has no caller, return an empty scope or an error that matches
	// ErrScope. If the caller can't be found now, return another error. In both cases
	// the engine refuses the request before anything is stored. But while
	// [Former.Claims] is set, a request without a caller can claim its key under the
	// former scope.
	Scope func(ctx context.Context, r *Request) (string, error)
	// CallerFromOp says that the handlers take the caller from [Op.Caller] and never
	// from a header, because a completer's request has no header that names the caller.
	// Resumable needs CallerFromOp if Scope or [OneScope] is set, here or in Former.
	// Resumable also needs CallerFromOp if a request has a [Request.Scope].
	CallerFromOp bool

	// Former describes how an earlier release found scopes; see [Former]. Default: none.
	Former *Former

	// Fingerprint defines which requests count as the same.
	Fingerprint Fingerprint

	// Quota limits the new operations of each caller. The engine asks Quota before it
	// claims a key, but not for an operation inside another operation. A caller over
	// the limit gets a 429 with Retry-After ([ErrQuota]), and may retry with the same
	// key. Quota never refuses a request whose key has a record, and never a
	// completer's request. Each request of a caller over the limit costs one read of
	// the table (with [Former], up to two). Package idem/quota has an implementation.
	// Default: none.
	Quota Quota

	// Stored decides whether an answer of the handler is stored and replayed. Stored
	// gets the answer with all its headers, under canonical names. Stored must not
	// change the answer, and must be safe for concurrent use.
	//
	// If Stored returns false and nothing was done under the key, the client gets the
	// answer, and the key becomes free. If something was done, an answer below 500 is
	// withheld ([ErrUnfinished]), because the client would take it as the outcome. With
	// Resumable, the key becomes free only after a 4xx, and such an answer below 400 is
	// withheld even if nothing was done. Stored isn't asked about answers of [Respond]
	// and [Finish]: they are stored whatever their status. If an adapter's answers have
	// no status, Stored gets the status 200. Default: DefaultStored.
	Stored func(Response) bool
	// StoreHeaders names the response headers to store in addition to Content-Type,
	// Location and similar headers, which are always stored. New refuses headers that
	// carry secrets.
	StoreHeaders []string
	// MaxBody is the largest response body to store, in bytes. If an answer's body is
	// larger, the engine stores only the status. A retry then gets ErrNotKept and never
	// runs the handler again. MaxBody is at most 6 MiB. Default: 256 KiB.
	MaxBody int
	// MaxRequest is the largest request body that Middleware reads, in bytes. A request
	// with a larger body is refused with [ErrTooLarge], or with [ErrIncomparable] if
	// its key has a record.
	//
	// With Resumable, MaxRequest limits only the bodies of new requests, because only
	// new requests are stored. MaxRequest is then at most 10 MiB. Middleware still
	// reads bodies of up to 10 MiB. If a request's key has a record, the engine
	// compares the request with the record and answers, whatever MaxRequest is. A new
	// request is stored, even if the handler then refuses it. Each KB costs two write
	// units. Default: 10 MiB; with Resumable 256 KiB.
	MaxRequest int

	// Resumable stores the request with its claim, so that a completer can finish the
	// operation without the client. A request with [Request.Redelivered] isn't stored.
	// Use Resumable only with handlers whose effects are in phases: other effects may
	// happen twice. After an error, a panic or an unstored 5xx, the key stays taken,
	// and the client's retry or the completer continues the operation. Of the handler's
	// outcomes, only a stored answer, or an unstored 4xx before anything was done, ends
	// the operation.
	Resumable bool
	// CallsOut says that every handler calls another system ([Foreign]) before it
	// answers. The claim then records that a call follows, which saves the write before
	// the first Foreign. The price: if an attempt dies, even before its call, the
	// engine assumes that the call was made. If the next attempt answers without a
	// call, the engine withholds the answer, and after MaxTries the operation is stuck.
	// So leave CallsOut off for handlers that may answer without a call. Leave it off,
	// too, if the first call is never repeated ([NotIdempotent], or [Remembers] of
	// zero).
	CallsOut bool
	// InputHeaders names the headers to store with a Resumable request, in addition to
	// Content-Type. New refuses headers that carry secrets.
	InputHeaders []string
	// MaxTries is how many tries an operation has before it is stuck. Each attempt of a
	// completer is a try, and each attempt whose answer is withheld. [LookUp] says
	// which attempts with a look-up count. If a completer finds that the tries are used
	// up and nothing was done under the key, the key becomes free instead. Default: 10.
	MaxTries int

	// Problem makes the answers that the engine gives in place of the handler.
	// Default: ProblemJSON.
	Problem func(Problem) Response
	// CORS lists the origins, besides the API's own, whose pages may read the answers
	// that the engine gives in place of the handler. Default: none. Leave CORS empty if
	// a middleware or gateway in front of the engine adds the headers.
	CORS  CORS
	rules rules // of a preset

	// Logger gets warnings and errors, and the findings of ModeObserve and of look-ups,
	// but never keys or bodies. Default: slog.Default(), so that the cause of a 500 or
	// 503 is in the function's log.
	Logger *slog.Logger
	// Hooks are called as the engine works, for metrics.
	Hooks Hooks
	// Tracer makes a span for each step of an operation, and passes the trace on with
	// the operation's jobs. Use Telemetry.Tracer of module
	// github.com/samekey/samekey/otel. If Tracer is set, a record stores the trace
	// context of its claim (if that trace is recorded), and each job stores the trace
	// context of its phase: about 60 bytes each. Default: none, and nothing is stored.
	Tracer trace.Tracer

	oneScope bool // see OneScope
	oneKey   int  // the length of the shortest key that callers with OneScope may use

	// Now is the clock with which the engine sets and compares stored times. Replace it
	// only in tests. Default: time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Function = cmp.Or(o.Function, os.Getenv("AWS_LAMBDA_FUNCTION_NAME"))
	o.Retention = cmp.Or(o.Retention, defaults.Retention)
	o.Lease = cmp.Or(o.Lease, defaults.Lease)
	o.LeaseMargin = cmp.Or(o.LeaseMargin, defaults.LeaseMargin)
	o.oneKey = cmp.Or(o.MinKey, minRandomKey)
	o.MinKey = cmp.Or(o.MinKey, 1)
	o.MaxBody = cmp.Or(o.MaxBody, defaults.MaxBody)
	if o.MaxRequest == 0 {
		if o.MaxRequest = defaults.MaxRequest; o.Resumable {
			o.MaxRequest = defaults.MaxInput
		}
	}
	o.MaxTries = cmp.Or(o.MaxTries, defaults.MaxTries)
	o.KeyHeader = http.CanonicalHeaderKey(cmp.Or(o.KeyHeader, KeyHeader))
	if o.Methods == nil {
		o.Methods = defaults.Methods()
	}
	if o.Stored == nil {
		o.Stored = DefaultStored
	}
	if o.Problem == nil {
		o.Problem = ProblemJSON
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o *Options) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(state.IsNamespace(o.Namespace),
		"Namespace %q: at most 64 letters, digits, '-', '_' and '.'", o.Namespace)
	check(len(o.Function) <= maxName && utf8.ValidString(o.Function), "Function %.40q: at most %d bytes of UTF-8", o.Function, maxName)
	check(o.Retention >= defaults.MinRetention, "Retention %v: at least %v", o.Retention, defaults.MinRetention)
	check(o.Lease > defaults.Reserve && o.Lease <= o.Retention, "Lease %v: above %v and at most the retention", o.Lease, defaults.Reserve)
	check(o.LeaseMargin >= defaults.MinLeaseMargin, "LeaseMargin %v: at least %v", o.LeaseMargin, defaults.MinLeaseMargin)
	check(o.MinKey >= 1 && o.MinKey <= defaults.MaxKey, "MinKey %d: 1 to %d", o.MinKey, defaults.MaxKey)
	check(validName(o.KeyHeader) && !slices.Contains(noKeyHeader, o.KeyHeader), "KeyHeader %q: not a header for keys", o.KeyHeader)
	check(o.Mode >= ModeEnforce && o.Mode <= ModeOff, "Mode %d: unknown mode", int(o.Mode))
	check(o.Key >= KeyRequired && o.Key <= KeyGenerate, "Key %d: unknown mode", o.Key)
	check(o.MaxBody > 0 && o.MaxBody <= defaults.MaxMaxBody, "MaxBody %d: 1 to %d", o.MaxBody, defaults.MaxMaxBody)
	check(o.MaxRequest > 0 && (!o.Resumable || o.MaxRequest <= defaults.MaxStoredRequest), "MaxRequest %d: above zero, and at most %d with Resumable", o.MaxRequest, defaults.MaxStoredRequest)
	check(o.InFlight >= InFlightRefuse && o.InFlight <= InFlightAccept, "InFlight %d: unknown mode", o.InFlight)
	check(o.InFlight != InFlightAccept || o.StatusURL != "", "InFlightAccept needs StatusURL")
	if o.StatusURL != "" {
		err := validStatusURL(o.StatusURL)
		check(err == nil, "StatusURL %q: %v", o.StatusURL, err)
	}
	check(o.MaxTries > 0, "MaxTries %d: above zero", o.MaxTries)
	check(!o.Resumable || o.Mode == ModeEnforce, "Mode %v: Resumable is for handlers with phases, which need a record", o.Mode)
	check(!o.Resumable || o.Function != "", "Resumable without Function: a completer couldn't tell this program's operations from another's; "+
		"set Options.Function, as Lambda does")
	check(!o.Resumable || o.CallerFromOp || o.Scope == nil && !o.oneScope && (o.Former == nil || o.Former.Scope == nil && !o.Former.OneScope), "%s", callerFromOp)
	for _, name := range o.InputHeaders {
		canonical := http.CanonicalHeaderKey(name)
		check(!slices.Contains(secretHeaders, canonical) && canonical != o.KeyHeader, "InputHeaders: %s may hold a secret", canonical)
	}
	for _, name := range o.StoreHeaders {
		canonical := http.CanonicalHeaderKey(name)
		check(!slices.Contains(neverStored, canonical) && !strings.HasPrefix(canonical, "X-Amz") && canonical != KeyHeader && canonical != o.KeyHeader,
			"StoreHeaders: %s can't be replayed", canonical)
	}
	for _, m := range o.Methods {
		check(m == strings.ToUpper(m) && m != "" && m != http.MethodGet && m != http.MethodHead,
			"Methods: %q is not a method that changes something, in upper case", m)
	}
	for _, err := range []error{o.Fingerprint.validate(o.KeyHeader), o.CORS.validate(), o.rules.validate(o), o.Former.validate(o)} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// noKeyHeader lists headers that have another meaning, so they can't carry keys.
var noKeyHeader = []string{
	"Authorization", "Cookie", "Content-Length", "Content-Type", "Host", "Origin", "X-Api-Key", expiresHeader, ReplayedHeader, statusHeader,
}

// isNil reports whether s is nil or contains a nil pointer.
func isNil(s store.Store) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
