package tenants_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/lambda"
)

// app is a program: an engine with its own settings.
type app struct {
	name      string
	opt       func(*idem.Options)
	phases    bool // its handlers have two
	resumable bool
	waits     bool
	statusURL string
}

// typedApps is how many apps, from the first, take events without HTTP.
const typedApps = 3

var apps = []app{
	{name: "plain"},
	{name: "small answers", opt: func(o *idem.Options) { o.Retention = time.Hour }},
	{name: "resumable", phases: true, resumable: true, statusURL: "/operations/", opt: func(o *idem.Options) {
		o.Function, o.Namespace, o.Resumable, o.CallerFromOp, o.InFlight, o.StatusURL = "f", "resumable", true, true, idem.InFlightAccept, "/operations/"
	}},
	{name: "waiting", waits: true, opt: func(o *idem.Options) { o.InFlight = idem.InFlightWait }},
	{name: "phases", phases: true, opt: func(o *idem.Options) { o.Namespace = "phases" }},
	{name: "stripe", statusURL: "/status/", opt: func(o *idem.Options) {
		idem.Stripe(o)
		o.Namespace, o.StatusURL = "stripe", "/status/"
		o.Fingerprint.Secrets = []idem.Secret{{ID: "s1", Key: []byte("0123456789abcdef")}}
	}},
	{name: "chosen", phases: true, resumable: true, statusURL: "/operations/", opt: func(o *idem.Options) {
		o.Function, o.Namespace, o.Resumable, o.CallerFromOp, o.StatusURL = "f", "chosen", true, true, "/operations/"
		o.Scope = chosen
	}},
	{name: "routes", opt: func(o *idem.Options) { o.Namespace, o.Key = "routes", idem.KeyOptional }},
}

// chosen makes callers of all that is verified about a request.
func chosen(ctx context.Context, r *idem.Request) (string, error) {
	switch {
	case r.Identity.Subject != "":
		return r.Identity.Kind + "|" + r.Identity.Subject, nil
	case r.Facts.Session != "":
		return lambda.SessionScope(ctx, r)
	case r.Facts.APIKey != "":
		return lambda.APIKeyScope(ctx, r)
	}
	return lambda.CertificateScope(ctx, r)
}

// world is a store with its apps and what has happened there.
type world struct {
	script *script
	store  *recording
	epoch  time.Time
	at     atomic.Int64 // the clock, since epoch
	only   *caller      // the only group whose requests are sent; nil: all
	settle func()       // returns once the requests beside this one wait; nil: there are none
	doors  []map[string]door
	plant  planted
	sent   []atomic.Pointer[visit] // by a request's index

	mu       sync.Mutex
	runs     map[caller]int
	accounts map[account]caller
}

// account is how a program that takes the caller from the operation knows its callers.
type account struct{ tenant, subject string }

// door takes the events of an app's function.
type door struct {
	invoke func(ctx context.Context, payload []byte) ([]byte, error)
}

// settings are what differs between stores.
type settings struct {
	settle func()
	plant  planted
}

func newWorld(s *script, on store.Store, epoch time.Time, set settings, only *caller) *world {
	w := &world{
		script: s, store: &recording{Store: on, last: make(map[string]ticket)}, epoch: epoch, only: only, settle: set.settle, plant: set.plant,
		sent: make([]atomic.Pointer[visit], len(s.all)), runs: make(map[caller]int), accounts: make(map[account]caller),
	}
	w.store.plant = set.plant
	for i := range apps {
		w.doors = append(w.doors, w.open(&apps[i], set))
	}
	return w
}

func (w *world) engine(a *app, set settings) *idem.Engine {
	return idem.New(w.store, func(o *idem.Options) {
		if a.opt != nil {
			a.opt(o)
		}
		o.Function, o.Retention, o.Lease = "api", retention, lease
		if set.settle == nil { // time is real
			o.InFlight = idem.InFlightRefuse
		}
		o.CORS = idem.CORS{}
		o.Logger = slog.New(slog.DiscardHandler)
		o.Now = func() time.Time { return w.epoch.Add(time.Duration(w.at.Load())) }
		if w.plant.options != nil {
			w.plant.options(o)
		}
		o.CallerFromOp = true
	})
}

// visit is what a request met.
type visit struct {
	w     *world
	req   *request
	depth int // how many requests' handlers wait for it

	once    sync.Once
	waiters sync.WaitGroup

	mu     sync.Mutex
	answer string
	ran    []string // what its handler was given
	calls  []string // to the store
	pk     string   // the record that it used last
}

type visitKey struct{}

// play sends everything.
func (w *world) play(ctx context.Context) {
	for _, r := range w.script.roots {
		w.visit(ctx, r)
	}
}

func (w *world) visit(ctx context.Context, r *request) {
	w.at.Store(int64(r.at))
	v := &visit{w: w, req: r}
	if around, inside := ctx.Value(visitKey{}).(*visit); inside {
		v.depth = around.depth + 1
	}
	if w.only != nil && w.script.group(r) != *w.only {
		for _, child := range r.children { // as deep as beside the others: the depth decides how much time an event has
			w.visit(context.WithValue(ctx, visitKey{}, v), child)
		}
		return
	}
	w.sent[r.index].Store(v)
	v.answer = w.send(context.WithValue(ctx, visitKey{}, v), r)
	v.during(ctx) // if no handler ran
	v.waiters.Wait()
}

// during sends what arrives while a request's handler works.
func (v *visit) during(ctx context.Context) {
	ctx = context.WithValue(ctx, visitKey{}, v)
	v.once.Do(func() {
		for _, child := range v.req.children {
			if !child.waits || v.w.settle == nil {
				v.w.visit(ctx, child)
				continue
			}
			v.waiters.Go(func() { v.w.visit(ctx, child) })
			v.w.settle()
		}
	})
}

// asynchronous are the doors whose event waits for another attempt in its own time.
var asynchronous = []string{"direct", "appsync", "state", "rpc", "sns", "eventbridge", "s3"}

// send makes the event of a request, and returns what comes back.
func (w *world) send(ctx context.Context, r *request) string {
	c := w.script.callers[r.who]
	function := functions[0]
	if c.kind != "iam" && strings.HasPrefix(c.b, "arn:aws:lambda:") {
		function = c.b
	}
	payload := payloadOf(w.script, r)
	tenant := c.tenant
	if r.resume != nil {
		var known bool
		if payload, known = w.ticket(r); !known {
			return "no ticket"
		}
		if r.ticket == otherTenant {
			tenant += "x"
		}
	}
	ctx = lambdacontext.NewContext(asleep.With(ctx), &lambdacontext.LambdaContext{InvokedFunctionArn: function, TenantID: tenant})
	if depth := ctx.Value(visitKey{}).(*visit).depth; depth > 0 && slices.Contains(asynchronous, r.door) {
		// It would wait for the handler that waits for it: for less time than that one has.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 8*time.Second>>depth)
		defer cancel()
	}
	invoke := w.doors[r.app][r.door].invoke
	if w.plant.invoke != nil {
		invoke = w.plant.invoke(r, invoke)
	}
	out, err := invoke(ctx, payload)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(out)
}

// ticket makes the envelope that a completer sends.
func (w *world) ticket(r *request) (payload []byte, known bool) {
	pk := w.record(r.resume)
	if pk == "" {
		return nil, false
	}
	t := w.store.ticket(pk)
	switch r.ticket {
	case forgedOwner:
		t.owner = "FORGED"
	case forgedVersion:
		t.ver++
	case swapped:
		// Alone there is no other operation: another owner fits no better.
		other := ticket{"ANOTHER", 1}
		if o := w.store.ticket(w.record(r.other)); o.owner != "" && w.record(r.other) != pk {
			other = o
		}
		t = other
	}
	return fmt.Appendf(nil, `{"samekey":{"resume":{"pk":%q,"owner":%q,"ver":%d}}}`, pk, t.owner, max(t.ver, 1)), true
}

// record returns the record that a request has used, "" if it was not sent.
func (w *world) record(r *request) string {
	v := w.sent[r.index].Load()
	if v == nil {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pk
}

// reply is an answer of a handler, in no event's form.
type reply struct {
	status int
	header map[string]string
	body   string
}

// work is the handler of all doors. It names in every part of its answer who has
// asked for what.
func (w *world) work(ctx context.Context, who caller, what int) (reply, error) {
	v, _ := ctx.Value(visitKey{}).(*visit)
	op, inside := idem.FromContext(ctx)
	if inside {
		who = w.owner(op, who)
	}
	id := -1
	for i, c := range w.script.callers {
		if c.group() == who.group() {
			id = i
		}
	}
	w.mu.Lock()
	w.runs[who.group()]++
	run := w.runs[who.group()]
	w.mu.Unlock()
	mark := fmt.Sprintf("who-%d-%d-%d-", id, what, run)
	v.mu.Lock()
	v.ran = append(v.ran, mark)
	v.mu.Unlock()
	does := "created"
	if what >= 0 {
		does = contents[what].does
	}
	if inside && apps[v.req.app].phases {
		first, err := idem.Atomic(ctx, "first", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Stage(idem.NewJob("mail", mark))
			return mark, nil
		})
		if err != nil {
			return reply{}, err
		}
		mark = first
	}
	v.during(context.WithoutCancel(ctxOutside(ctx)))
	switch {
	case does == "fails at first" && run%2 == 1:
		return reply{}, errors.New("failed for " + mark)
	case does == "declined":
		return reply{status: http.StatusPaymentRequired, header: headers(mark), body: mark}, nil
	case does == "refused":
		return reply{status: http.StatusBadRequest, header: headers(mark), body: mark}, nil
	case does == "large":
		return reply{status: http.StatusOK, header: headers(mark), body: mark + noise(mark)}, nil
	}
	return reply{status: http.StatusCreated, header: headers(mark), body: mark}, nil
}

// owner returns whose operation op is. The event of a completer's run has no client
// certificate: a handler that promises CallerFromOp looks its caller up.
func (w *world) owner(op *idem.Op, who caller) caller {
	if op.Caller().Kind != "program" {
		return who
	}
	a := account{who.tenant, op.Caller().Subject}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !op.TakenOver() {
		w.accounts[a] = who
	} else if known, ok := w.accounts[a]; ok && who.kind == "none" {
		return known
	}
	return who
}

// ctxOutside is the context of a request that arrives from outside: it knows nothing
// of the operation in which it was found.
func ctxOutside(context.Context) context.Context { return context.Background() }

func headers(mark string) map[string]string {
	return map[string]string{"Location": "/made/" + mark, "Etag": mark, "Set-Cookie": "session=" + mark, "X-Own": mark, "Content-Type": "text/plain"}
}

// noise doesn't compress, so that a body lies outside of its record.
func noise(mark string) string {
	var b strings.Builder
	sum := sha256.Sum256([]byte(mark))
	for b.Len() < 12<<10 {
		sum = sha256.Sum256(sum[:])
		b.WriteString(hex.EncodeToString(sum[:]))
	}
	return b.String()
}

var marks = regexp.MustCompile(`who-(-?\d+)-(-?\d+)-(\d+)-`)

// foreign returns a mark in a visit's answer or runs that is not of its caller and
// content. A status, and a ticket, have no content of their own.
func (v *visit) foreign() string {
	r := v.req
	if r.resume != nil {
		r = r.resume
	}
	for _, text := range append([]string{v.answer}, v.ran...) {
		for _, m := range marks.FindAllStringSubmatch(text, -1) {
			who, _ := strconv.Atoi(m[1])
			what, _ := strconv.Atoi(m[2])
			if !v.w.script.same(who, r.who) || what != r.means() && !r.status && v.req.resume == nil {
				return m[0]
			}
		}
	}
	return ""
}

type ticket struct {
	owner string
	ver   int64
}

// recording is a store that notes the calls of each visit.
type recording struct {
	store.Store
	plant planted

	mu   sync.Mutex
	last map[string]ticket
}

func (s *recording) ticket(pk string) ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[pk]
}

// note records a call: its kind, and the size of what was sent and of what came back.
func (s *recording) note(ctx context.Context, verb, pk string, next, held *store.Record) {
	if next != nil && (held == nil || held.State == store.None) {
		s.mu.Lock()
		s.last[pk] = ticket{next.Owner, next.Ver}
		s.mu.Unlock()
	}
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.mu.Lock()
		v.pk = pk
		if call := fmt.Sprintf("%s %d %d", verb, size(next), size(held)); len(v.calls) == 0 || v.calls[len(v.calls)-1] != call {
			v.calls = append(v.calls, call) // a request that waits reads at random intervals
		}
		v.mu.Unlock()
	}
}

// size is what a reader of the wire sees of a record, without the digits of numbers.
func size(r *store.Record) int {
	if r == nil {
		return -1
	}
	n := len(r.PK) + len(r.Owner) + len(r.Fingerprint) + len(r.ID) + len(r.Scope) + len(r.Route) + len(r.LastErr) +
		len(r.Tenant) + len(r.Phases) + len(r.Jobs)
	if r.Response != nil {
		n += len(r.Response.Body)
		for name, values := range r.Response.Header {
			n += len(name) + len(strings.Join(values, ""))
		}
	}
	if r.Input != nil {
		n += len(r.Input.Body)
	}
	return n
}

func (s *recording) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	held, err := s.Store.Claim(ctx, c)
	s.note(ctx, "claim", c.Next.PK, c.Next, held)
	return held, err
}

func (s *recording) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	held, err := s.Store.Commit(ctx, c)
	s.note(ctx, "commit", c.Next.PK, c.Next, held)
	return held, err
}

func (s *recording) Load(ctx context.Context, pk string) (*store.Record, error) {
	rec, err := s.Store.Load(ctx, pk)
	s.note(ctx, "load", pk, nil, rec)
	return rec, err
}

func (s *recording) Take(ctx context.Context, t store.Take) (*store.Record, bool, error) {
	if s.plant.take != nil {
		t = s.plant.take(ctx, s.Store, t)
	}
	rec, taken, err := s.Store.(store.Taker).Take(ctx, t)
	if taken {
		s.note(ctx, "take", t.PK, rec, nil)
	} else {
		s.note(ctx, "take", t.PK, nil, rec)
	}
	return rec, taken, err
}

func (s *recording) LoadBody(ctx context.Context, r *store.Record) error {
	if l, ok := s.Store.(store.BodyLoader); ok {
		return l.LoadBody(ctx, r)
	}
	return idem.ErrNotKept
}
