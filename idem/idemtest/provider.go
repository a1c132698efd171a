package idemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// ErrNoAnswer matches the error of a call that got no answer from a [Provider]. The
// call may still have had its effect.
var ErrNoAnswer = errors.New("idemtest: no answer")

// Provider is a fake of a payment provider, a mail service or another system that takes
// idempotency keys. A Provider counts effects. If a key is sent again with the same
// request, the Provider returns the first answer, and the call has no second effect. If a
// key is sent again with another request, the Provider refuses the call, as Stripe does.
// Each call without a key has an effect.
//
// A Provider is an [http.Handler] for a test server. It is also an [http.RoundTripper],
// for a client that is tested without a network. If the program calls the system
// through a Go interface, write a fake of the interface, and let the fake use
// [Provider.Call]. GET and HEAD requests have no effect, and take no [Fate] from the
// queue of [Provider.Next]. The zero Provider is ready to use. A Provider is safe for
// concurrent use once its exported fields are set, and must not be copied.
type Provider struct {
	// Memory is how long the Provider remembers a call's key after the call's effect. After
	// that time, the key counts as new. Zero means that the Provider remembers keys until
	// [Provider.Forget] is called. A negative Memory means that no key is remembered, as in
	// a system without keys.
	Memory time.Duration
	// Now is the clock for Memory, Lag and [Fate].Late. Default: time.Now.
	Now func() time.Time
	// Answer returns the body of the HTTP answer for an effect. The Provider sends the body
	// as JSON, with status 200. By default, the body is the effect's ID, such as
	// {"id":"1"}. Answer may be called more than once for an effect.
	Answer func(Effect) any

	// Lag is how old an effect must be before look-ups find it. Default: look-ups find
	// an effect at once.
	Lag time.Duration

	mu      sync.Mutex
	fates   []Fate
	looks   []Look
	calls   int
	effects []*Effect
	coming  []coming // in the order of arrival
}

// coming is a call that has not arrived yet, because its Fate is Late.
type coming struct {
	at                time.Time
	method, path, key string
	body              []byte
}

// Effect is the effect of a call, such as a payment or a mail.
type Effect struct {
	ID     string // "1", "2", …
	Method string // method of the HTTP request; "" for [Provider.Call]
	Path   string // path of the HTTP request, or the name of the call
	Key    string // the idempotency key; "" for none
	Body   []byte // body of the call that had the effect
	// Calls is the number of calls with the effect's key while the Provider remembers the
	// key. Calls doesn't count calls that Fate.LoseRequest lost or Fate.Refuse refused.
	Calls int

	made      time.Time
	forgotten bool
}

// String returns what was called, such as "POST /charges".
func (e Effect) String() string {
	if e.Method == "" {
		return e.Path
	}
	return e.Method + " " + e.Path
}

// Fate says what happens to a call to a [Provider]. With the zero Fate, the call succeeds.
type Fate struct {
	// Delay delays the answer, in real time. The effect isn't delayed. If the call's
	// context ends during the delay, the call gets no answer.
	Delay time.Duration
	// LoseRequest loses the call: the call has no effect and gets no answer.
	LoseRequest bool
	// LoseAnswer loses only the answer: the call has its effect.
	LoseAnswer bool
	// Late delays the call's arrival by this duration, on the clock Provider.Now, and loses
	// the answer.
	Late time.Duration
	// Refuse makes the Provider answer with this status, without an effect: 402 for a
	// declined card, 503 for a provider that is down. Zero means no refusal.
	Refuse int
}

// Look says what happens to a look-up at a [Provider]. With the zero Look, the look-up
// succeeds.
type Look struct {
	// Delay delays the answer, in real time. If the look-up's context ends during the
	// delay, the look-up gets no answer.
	Delay time.Duration
	// Down makes the look-up get no answer.
	Down bool
	// Behind makes the look-up find nothing, even if the call has had its effect. A real
	// look-up that is only eventually consistent can do the same.
	Behind bool
	// OtherKey makes the look-up find an effect of another key, if there is one.
	OtherKey bool
}

// Refusal is the error of [Provider.Call] for a call that the Provider refused.
type Refusal struct {
	Status int
	Type   string // "idempotency_error", "card_error", "invalid_request_error" or "api_error"
}

func (r *Refusal) Error() string { return fmt.Sprintf("idemtest: refused: %d %s", r.Status, r.Type) }

// Next adds fates to a queue. Each call takes one Fate from the queue. When the queue is
// empty, calls succeed.
func (p *Provider) Next(fates ...Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fates = append(p.fates, fates...)
}

// NextLooks adds looks to a queue. Each look-up takes one [Look] from this queue. When
// the queue is empty, look-ups succeed.
func (p *Provider) NextLooks(looks ...Look) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks = append(p.looks, looks...)
}

// LookUp returns the effects of the calls with a key, or no effects if no call had the
// key. Use LookUp in the function of a phase's [idem.LookUp]. LookUp also finds the
// effects of keys that the Provider has forgotten, or has never remembered because
// Memory is negative. An error of LookUp matches [ErrNoAnswer].
func (p *Provider) LookUp(ctx context.Context, key string) ([]Effect, error) {
	found, look := p.look(key)
	if look.Delay > 0 {
		held := time.NewTimer(look.Delay)
		defer held.Stop()
		select {
		case <-held.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNoAnswer, context.Cause(ctx))
		}
	}
	if look.Down {
		return nil, ErrNoAnswer
	}
	return found, nil
}

func (p *Provider) look(key string) (found []Effect, look Look) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrive()
	if len(p.looks) > 0 {
		look, p.looks = p.looks[0], p.looks[1:]
	}
	for _, e := range p.effects {
		if (e.Key == key) == look.OtherKey || look.Behind || p.now().Sub(e.made) < p.Lag {
			continue
		}
		c := *e
		c.Body = bytes.Clone(e.Body)
		if found = append(found, c); look.OtherKey {
			break
		}
	}
	return found, look
}

func (p *Provider) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// Provider.arrive carries out the calls whose arrival is due. p must be locked.
func (p *Provider) arrive() {
	now := p.now()
	p.coming = slices.DeleteFunc(p.coming, func(c coming) bool {
		if c.at.After(now) {
			return false
		}
		_, _ = p.effect(c.method, c.path, c.key, c.body, c.at) // drop the answer: the caller has already got ErrNoAnswer
		return true
	})
}

// Forget makes the Provider forget all keys, as a real provider does after some time.
func (p *Provider) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrive()
	for _, e := range p.effects {
		e.forgotten = true
	}
}

// Calls returns how many calls were made to the Provider. It doesn't count GET and HEAD
// requests, nor calls that Fate.LoseRequest lost. It counts a call with Fate.Late at
// once.
func (p *Provider) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// Effects returns copies of all effects, oldest first. If paths are given, Effects returns
// only the effects on these paths.
func (p *Provider) Effects(paths ...string) []Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrive()
	var all []Effect
	for _, e := range p.effects {
		if len(paths) == 0 || slices.Contains(paths, e.Path) {
			c := *e
			c.Body = bytes.Clone(e.Body)
			all = append(all, c)
		}
	}
	return all
}

// Call makes a call that has a name instead of an HTTP method and path. Use Call in
// fakes of Go interfaces. Calls with the same key must have the same name and the same
// args, compared as JSON. Otherwise the Provider refuses the later call. An error of
// Call matches [ErrNoAnswer], or is a [*Refusal], or says that args can't be encoded as
// JSON. If ctx ends during Fate.Delay, the error matches both [ErrNoAnswer] and the
// cause of ctx.
func (p *Provider) Call(ctx context.Context, name, key string, args any) (Effect, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return Effect{}, err
	}
	e, refused, err := p.handle(ctx, "", name, key, body)
	switch {
	case err != nil:
		return Effect{}, err
	case refused != nil:
		return Effect{}, refused
	}
	return e, nil
}

// RoundTrip implements [http.RoundTripper]. The Provider answers every request, whatever
// the host.
func (p *Provider) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	status, answer, err := p.serve(req.Context(), req.Method, req.URL.Path, req.Header.Get("Idempotency-Key"), body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(len(answer)), Body: io.NopCloser(bytes.NewReader(answer)), Request: req,
	}, nil
}

// ServeHTTP implements [http.Handler], for servers of package httptest. To lose an answer,
// ServeHTTP cuts the connection in the middle of the answer.
func (p *Provider) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	rw.Header().Set("Content-Type", "application/json")
	status, answer, err := p.serve(r.Context(), r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), body)
	if err != nil {
		// Send part of an answer: without any answer, Go's client would repeat a keyed
		// request by itself.
		rw.Header().Set("Content-Length", "100")
		_, _ = rw.Write([]byte("{"))
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to cut a connection
	}
	rw.WriteHeader(status)
	_, _ = rw.Write(answer)
}

func (p *Provider) serve(ctx context.Context, method, path, key string, body []byte) (status int, answer []byte, err error) {
	var e Effect
	var refused *Refusal
	if method != http.MethodGet && method != http.MethodHead {
		if e, refused, err = p.handle(ctx, method, path, key, body); err != nil {
			return 0, nil, err
		}
	}
	v := any(map[string]string{"id": e.ID})
	switch {
	case refused != nil:
		status = refused.Status
		v = map[string]any{"error": map[string]string{"type": refused.Type, "message": refused.Error()}}
	case p.Answer != nil && e.ID != "":
		v = p.Answer(e)
	}
	answer, err = json.Marshal(v)
	return max(status, http.StatusOK), answer, err
}

// Provider.handle takes a call, makes its effect, and delays or loses the answer as the
// call's Fate says.
func (p *Provider) handle(ctx context.Context, method, path, key string, body []byte) (Effect, *Refusal, error) {
	e, refused, fate := p.take(method, path, key, body)
	if fate.Delay > 0 {
		held := time.NewTimer(fate.Delay)
		defer held.Stop()
		select {
		case <-held.C:
		case <-ctx.Done():
			return Effect{}, nil, fmt.Errorf("%w: %w", ErrNoAnswer, context.Cause(ctx))
		}
	}
	if fate.LoseRequest || fate.LoseAnswer || fate.Late > 0 {
		return Effect{}, nil, ErrNoAnswer
	}
	return e, refused, nil
}

func (p *Provider) take(method, path, key string, body []byte) (Effect, *Refusal, Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrive()
	var fate Fate
	if len(p.fates) > 0 {
		fate, p.fates = p.fates[0], p.fates[1:]
	}
	if fate.LoseRequest {
		return Effect{}, nil, fate
	}
	p.calls++
	if fate.Refuse != 0 {
		kind := "invalid_request_error"
		switch {
		case fate.Refuse == http.StatusPaymentRequired:
			kind = "card_error"
		case fate.Refuse >= http.StatusInternalServerError, fate.Refuse == http.StatusTooManyRequests:
			kind = "api_error"
		}
		return Effect{}, &Refusal{fate.Refuse, kind}, fate
	}
	if fate.Late > 0 {
		p.coming = append(p.coming, coming{p.now().Add(fate.Late), method, path, key, body})
		slices.SortStableFunc(p.coming, func(a, b coming) int { return a.at.Compare(b.at) })
		return Effect{}, nil, fate
	}
	e, refused := p.effect(method, path, key, body, p.now())
	return e, refused, fate
}

// Provider.effect makes the effect of a call that arrives now. If the call's key is
// known, effect returns the effect of the first call, or a refusal if the calls differ.
// p must be locked.
func (p *Provider) effect(method, path, key string, body []byte, now time.Time) (Effect, *Refusal) {
	for _, e := range p.effects {
		if key == "" || e.Key != key || e.forgotten || p.Memory < 0 || p.Memory > 0 && now.Sub(e.made) >= p.Memory {
			continue
		}
		e.Calls++
		if e.Method != method || e.Path != path || !bytes.Equal(e.Body, body) {
			return Effect{}, &Refusal{http.StatusBadRequest, "idempotency_error"}
		}
		return *e, nil
	}
	e := &Effect{ID: strconv.Itoa(len(p.effects) + 1), Method: method, Path: path, Key: key, Body: body, Calls: 1, made: now}
	p.effects = append(p.effects, e)
	return *e, nil
}
