package idem

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Defaults of [Options], and the limits they are held to.
const (
	DefaultRetention = 24 * time.Hour
	MinRetention     = time.Hour // longer than any claim packet can live

	// Retentions that are common besides the default: a weekend, over which nobody
	// mends what has broken on Friday (R81); a month.
	RetentionWeekend = 72 * time.Hour
	RetentionMonth   = 30 * 24 * time.Hour

	DefaultLease       = 30 * time.Second
	DefaultLeaseMargin = 2 * time.Second
	MinLeaseMargin     = time.Second
	DefaultRenewFor    = 15 * time.Minute // the longest an invocation can take
	DefaultReserve     = 500 * time.Millisecond

	DefaultMaxKey     = 255
	DefaultMaxBody    = 256 << 10
	MaxMaxBody        = 6 << 20
	DefaultMaxRequest = 10 << 20
	DefaultMaxTries   = 10

	DefaultMaxRetryAfter = 5 * time.Second

	maxName = 256 // of a function or handler, in bytes
)

// Options are an engine's settings. The zero value is the default contract;
// [Stripe], [StripeV1] and [IETF] are others to start from:
//
//	idem.New(store, idem.Stripe, func(o *idem.Options) { o.Retention = 72 * time.Hour })
//
// Routes that need other settings get an engine of their own on the same store.
type Options struct {
	// Namespace separates applications that share a table: it is part of every
	// partition key. Letters, digits, "-", "_" and "."; at most 64. A change
	// makes all earlier keys new. Default: none.
	Namespace string

	// Function names the program that runs this engine's operations. A record keeps
	// it, and only who acts for that function completes it without its client
	// ([Engine.Resume]). Aliases that are applications of their own on one table
	// need names of their own. At most 256 bytes. Default: AWS_LAMBDA_FUNCTION_NAME,
	// which Lambda sets; none elsewhere.
	Function string

	// Retention is how long a finished operation replays, and how long a key
	// that nobody finished is remembered. It must outlast the longest time over
	// which a client retries: a later retry runs anew (R84). At least
	// MinRetention. Default: DefaultRetention.
	Retention time.Duration

	// RetryWindow is the longest time over which clients, queues or completers
	// retry a request, where it is known. A Retention that it outlasts is refused.
	RetryWindow time.Duration
	// Tombstone is for how long after Retention a finished key is still known: a
	// retry then is told that the key has expired (ErrExpired), instead of being
	// carried out a second time. Default: 0, an expired key is new.
	Tombstone time.Duration

	// Lease is for how long an attempt holds its key where its context has no
	// deadline; where there is one, the lease ends with it. Default: DefaultLease.
	Lease time.Duration

	// LeaseMargin is added to the end of every lease, since a timeout may kill
	// late and clocks differ. At least MinLeaseMargin. Default: DefaultLeaseMargin.
	LeaseMargin time.Duration

	// RenewFor is for how long the lease of a handler is renewed that works on when
	// its time is over, where nobody kills it: on Lambda Managed Instances, in a
	// container, under net/http. A renewal is one write and adds a Lease. Requests
	// that end in time have none, and a process that is killed at its deadline has
	// none. After it, the next attempt takes over, though the handler may live.
	// Default: DefaultRenewFor. Negative: never.
	RenewFor time.Duration

	// Reserve is kept back before the deadline for the last write and the answer:
	// the handler's context ends that much earlier, and a request with less time
	// left is not begun (ErrNoTime). Its last fifth is the answer's: until then,
	// what the handler has done is tried to be stored, and no longer. Default:
	// DefaultReserve.
	Reserve time.Duration

	// Methods are the HTTP methods keys act on; others pass untouched. Default: POST.
	Methods []string

	// Key says what becomes of a request without a key. Default: KeyRequired.
	Key KeyMode
	// KeyOptionalOn are methods on which a request without a key passes whatever
	// Key says, unless that is KeyObserve. Default: none.
	KeyOptionalOn []string
	// StrictKey takes keys in quotes only, as the IETF draft has them.
	StrictKey bool
	// MinKey and MaxKey are the limits of a key's length in bytes. Default: 1
	// and DefaultMaxKey, which is also the most.
	MinKey, MaxKey int

	// KeyFrom finds the key of a request whose header has none: in a form, or in
	// an event that has no headers. [ErrKeyMissing] says that there is none.
	KeyFrom func(*Request) (string, error)
	// MarkIgnored adds "Idempotency-Status: ignored" to the answers of requests
	// that carry a key nothing is done with: another method, Disabled,
	// KeyObserve, or a store that FailOpen does without.
	MarkIgnored bool

	// InFlight says what a request gets whose key another attempt holds.
	// Default: InFlightRefuse.
	InFlight InFlightMode
	// WaitMax bounds InFlightWait. Default: DefaultWaitMax.
	WaitMax time.Duration
	// MaxRetryAfter bounds what a client is told to wait for while another attempt
	// holds its key, in a 409, a 202 and by the status resource: its lease may end
	// long after its handler has. At least a second. Default: DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration
	// StatusURL is where the status of an operation can be read, up to and with
	// the "/" that the key follows: a path, or a whole URL where a stage or a base
	// path stands before it. InFlightAccept needs it. See [Engine.ServeStatus].
	StatusURL string

	// Scope finds a request's scope. Default: its Tenant and its verified Identity.
	// See ScopeFunc.
	Scope ScopeFunc
	// Credentials name what tells callers apart whom nobody has verified, besides
	// Authorization, X-Api-Key and the host: headers, and cookies as "Cookie:NAME".
	// A session's cookie belongs here, unless Scope reads it. See ErrCredentials.
	Credentials []string
	// MismatchIsNew makes the fingerprint part of the scope: the same key with
	// another request is another operation instead of a mismatch. A client that
	// changes a request by mistake between retries then pays twice, so it is for
	// keys that others hand out, such as one for each session. Not with StatusURL.
	MismatchIsNew bool
	// ScopeRoute makes the route part of the scope: the same key on another
	// route is then another operation instead of a mismatch.
	ScopeRoute bool

	// Fingerprint says what makes two requests the same.
	Fingerprint Fingerprint

	// Stored says by status which answers are kept and replayed. The others are
	// given once and free the key. Default: DefaultStored.
	Stored func(status int) bool
	// StoreHeaders are response headers to keep besides content type, location
	// and their like. Headers that carry secrets are refused.
	StoreHeaders []string
	// MaxBody is the largest response body to keep, in bytes; of a larger one
	// only the status is, and a retry is told so (ErrNotKept), never run again.
	// At most MaxMaxBody. Default: DefaultMaxBody.
	MaxBody int
	// MaxRequest is the largest request body Middleware reads, in bytes.
	// Default: DefaultMaxRequest.
	MaxRequest int64

	// ReadFirst looks before it claims. That makes replays cheap and new
	// requests a read dearer: right for sources that repeat a lot.
	ReadFirst bool
	// CacheBytes bounds a cache of finished answers in this process, which then
	// replay without a call. Default: 0, no cache.
	CacheBytes int64

	// MergeClaim puts the claim into the handler's first commit, which saves a
	// call. The handler then begins before anything is known of the key, and may
	// begin again: so nothing but phases may have an effect in it, and a plain
	// answer is given only after a look at the record. A Foreign that comes first is
	// claimed before its call; its result then joins the next commit, as with
	// [Deferred], unless it has writes.
	MergeClaim bool
	// Resumable stores the request with its claim, so that a completer can bring
	// it to an end without its client. Phases are what makes that safe. From its
	// claim on a request is accepted: an error, a panic or an unstored 5xx leaves it
	// to its client's retry and to the completer, and only an answer that is stored
	// or an unstored 4xx ends it.
	Resumable bool
	// InputHeaders are request headers to store with it, besides Content-Type.
	// Headers that carry secrets are refused.
	InputHeaders []string
	// MaxTries is how often a completer takes an operation up before it is stuck
	// and waits for an operator. Default: DefaultMaxTries.
	MaxTries int

	// FailOpen runs the handler unprotected when the store can't be reached,
	// instead of 503. Each such run is counted by Hooks.FailedOpen.
	FailOpen bool
	// PassErrors hands a handler's error to the caller of Serve (and so to
	// Lambda) instead of answering 500 "retry with the same key".
	PassErrors bool
	// Disabled runs every handler unprotected and never touches the store,
	// which may then be nil.
	Disabled bool

	// Problem makes the answer for what the handler didn't answer.
	// Default: ProblemJSON.
	Problem func(Problem) Response
	// CORS says which pages of other origins may read what the handler didn't
	// answer. Default: none, unless something before the engine says so.
	CORS   CORS
	stripe bool // answers have the headers of Stripe's

	// Logger takes warnings and errors; never keys or bodies. Default:
	// slog.Default(), so that the cause of a 500 or 503 is in the function's log.
	Logger *slog.Logger
	// Hooks are told what happens, for metrics and traces.
	Hooks Hooks

	oneScope bool // see OneScope

	// Now is the clock that stored times are made and judged with, for tests.
	// Default: time.Now.
	Now func() time.Time
}

// withDefaults returns o with every zero field set.
func (o Options) withDefaults() Options {
	o.Function = cmp.Or(o.Function, os.Getenv("AWS_LAMBDA_FUNCTION_NAME"))
	o.Retention = cmp.Or(o.Retention, DefaultRetention)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.LeaseMargin = cmp.Or(o.LeaseMargin, DefaultLeaseMargin)
	o.RenewFor = cmp.Or(o.RenewFor, DefaultRenewFor)
	o.Reserve = cmp.Or(o.Reserve, DefaultReserve)
	o.MinKey = cmp.Or(o.MinKey, 1)
	o.MaxKey = cmp.Or(o.MaxKey, DefaultMaxKey)
	o.MaxBody = cmp.Or(o.MaxBody, DefaultMaxBody)
	o.MaxRequest = cmp.Or(o.MaxRequest, DefaultMaxRequest)
	o.MaxTries = cmp.Or(o.MaxTries, DefaultMaxTries)
	o.WaitMax = cmp.Or(o.WaitMax, DefaultWaitMax)
	o.MaxRetryAfter = cmp.Or(o.MaxRetryAfter, DefaultMaxRetryAfter)
	if o.Methods == nil {
		o.Methods = []string{http.MethodPost}
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

// validate reports every setting that can't work.
func (o *Options) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(len(o.Namespace) <= 64 && !strings.ContainsFunc(o.Namespace, notNamespace),
		"Namespace %q: at most 64 letters, digits, '-', '_' and '.'", o.Namespace)
	check(len(o.Function) <= maxName, "Function %.40q: at most %d bytes", o.Function, maxName)
	check(o.Retention >= MinRetention, "Retention %v: at least %v", o.Retention, MinRetention)
	check(o.Lease > 0 && o.Lease <= o.Retention, "Lease %v: above zero and at most the retention", o.Lease)
	check(o.LeaseMargin >= MinLeaseMargin, "LeaseMargin %v: at least %v", o.LeaseMargin, MinLeaseMargin)
	check(o.Reserve > 0 && o.Reserve < o.Lease, "Reserve %v: above zero and below the lease", o.Reserve)
	check(o.MinKey >= 1 && o.MinKey <= o.MaxKey && o.MaxKey <= DefaultMaxKey,
		"MinKey %d, MaxKey %d: 1 <= MinKey <= MaxKey <= %d", o.MinKey, o.MaxKey, DefaultMaxKey)
	check(o.Key >= KeyRequired && o.Key <= KeyObserve, "Key %d: unknown mode", o.Key)
	check(o.MaxBody > 0 && o.MaxBody <= MaxMaxBody, "MaxBody %d: 1 to %d", o.MaxBody, MaxMaxBody)
	check(o.MaxRequest > 0, "MaxRequest %d: above zero", o.MaxRequest)
	check(o.Retention >= o.RetryWindow && o.RetryWindow >= 0,
		"Retention %v: must outlast RetryWindow %v, or a late retry runs again", o.Retention, o.RetryWindow)
	check(o.Tombstone >= 0, "Tombstone %v: not negative", o.Tombstone)
	check(o.InFlight >= InFlightRefuse && o.InFlight <= InFlightAccept, "InFlight %d: unknown mode", o.InFlight)
	check(o.MaxRetryAfter >= time.Second, "MaxRetryAfter %v: at least a second", o.MaxRetryAfter)
	check(o.WaitMax > 0, "WaitMax %v: above zero", o.WaitMax)
	check(o.InFlight != InFlightAccept || o.StatusURL != "", "InFlightAccept needs StatusURL")
	if o.StatusURL != "" {
		err := validStatusURL(o.StatusURL)
		check(err == nil, "StatusURL %q: %v", o.StatusURL, err)
		check(!o.ScopeRoute, "StatusURL and ScopeRoute: the status of an operation has a route of its own")
		check(!o.MismatchIsNew, "StatusURL and MismatchIsNew: who asks for a status has no body to tell two operations apart")
	}
	for _, name := range o.Credentials {
		err := validCredential(name)
		check(err == nil, "Credentials: %v", err)
	}
	check(o.Key != KeyObserve || !o.MergeClaim && !o.Resumable, "KeyObserve is not for handlers with phases")
	check(o.MaxTries > 0, "MaxTries %d: above zero", o.MaxTries)
	check(!o.Resumable || !o.FailOpen, "Resumable and FailOpen: a completer would run again what has run unprotected")
	check(!o.MergeClaim || !o.FailOpen, "MergeClaim and FailOpen: phases can't run without their store")
	for _, name := range o.InputHeaders {
		check(!secretInput[http.CanonicalHeaderKey(name)], "InputHeaders: %s may hold a secret", http.CanonicalHeaderKey(name))
	}
	check(o.CacheBytes >= 0, "CacheBytes %d: not negative", o.CacheBytes)
	for _, name := range o.StoreHeaders {
		canonical := http.CanonicalHeaderKey(name)
		check(!slices.Contains(neverStored, canonical) && !strings.HasPrefix(canonical, "X-Amz"),
			"StoreHeaders: %s can't be replayed", canonical)
	}
	for _, m := range o.Methods {
		check(m == strings.ToUpper(m) && m != "" && m != http.MethodGet && m != http.MethodHead,
			"Methods: %q is not a method that changes something, in upper case", m)
	}
	for _, err := range []error{o.Fingerprint.validate(), o.CORS.validate()} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func notNamespace(c rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", c)
}

// isNil finds the typed nil pointer in an interface, which != nil doesn't.
func isNil(s store.Store) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
