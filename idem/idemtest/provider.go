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

// ErrNoAnswer matches errors from a call to a [Provider] whose answer was lost: the call
// may have had its effect.
var ErrNoAnswer = errors.New("idemtest: no answer")

// Provider is a fake of a payment provider, a mail service or another system that takes
// idempotency keys. It counts effects: a key that comes again gets the first answer and has
// no second effect. A key that comes with another request is refused, as Stripe refuses it.
// A call without a key has an effect each time.
//
// It is an [http.Handler], an [http.RoundTripper] for a client without a network, and has
// [Provider.Call] for fakes of a Go interface. GET and HEAD have no effect and no fate. The
// zero Provider is ready to use. A Provider is safe for concurrent use once its exported
// fields are set, and must not be copied.
type Provider struct {
	// Memory is how long a key is remembered after its effect: later, the key is new. 0:
	// until [Provider.Forget]. Below 0: not at all, like a system without keys.
	Memory time.Duration
	// Now is the clock for Memory. Default: time.Now.
	Now func() time.Time
	// Answer makes the body of an answer, sent as JSON with status 200. Default: the
	// effect's ID, as {"id":"1"}. It may be called more than once for an effect.
	Answer func(Effect) any

	// Lag is how long look-ups don't know an effect. Default: they know it at once.
	Lag time.Duration

	mu      sync.Mutex
	fates   []Fate
	looks   []Look
	calls   int
	effects []*Effect
	coming  []coming // calls on their way
}

// coming is a call that arrives later.
type coming struct {
	at                time.Time
	method, path, key string
	body              []byte
}

// Effect is what a call did: a payment, a mail.
type Effect struct {
	ID     string // "1", "2", …
	Method string // of the HTTP request; "" for [Provider.Call]
	Path   string // of the HTTP request, or the name of the call
	Key    string // the idempotency key; "" for none
	Body   []byte // of the first call
	Calls  int    // how many calls have met it: more than 1 where the caller has called again with the key

	made      time.Time
	forgotten bool
}

// String names what was called: "POST /charges".
func (e Effect) String() string {
	if e.Method == "" {
		return e.Path
	}
	return e.Method + " " + e.Path
}

// Fate says how a call to a [Provider] fares. In the zero Fate, all goes well.
type Fate struct {
	// Delay holds the answer back, in real time; a call whose context ends gets no answer. The effect comes first.
	Delay time.Duration
	// LoseRequest loses the call: no effect, no answer.
	LoseRequest bool
	// LoseAnswer loses the answer only.
	LoseAnswer bool
	// Late lets the call arrive later by this time on Provider.Now, and loses its answer.
	Late time.Duration
	// Refuse answers with this status, without an effect: 402 for a declined card,
	// 503 for a provider that is down. 0: don't.
	Refuse int
}

// Look says how a look-up of a [Provider] fares. In the zero Look, all goes well.
type Look struct {
	// Delay holds the answer back, in real time; a look-up whose context ends gets no
	// answer.
	Delay time.Duration
	// Down gives no answer.
	Down bool
	// Behind finds nothing, whatever was called, as an eventually consistent look-up may.
	Behind bool
	// OtherKey finds the effect of another key, if there is one.
	OtherKey bool
}

// Refusal is the error of [Provider.Call] for an answer without a status of success.
type Refusal struct {
	Status int
	Type   string // "idempotency_error", "card_error", "invalid_request_error" or "api_error"
}

func (r *Refusal) Error() string { return fmt.Sprintf("idemtest: refused: %d %s", r.Status, r.Type) }

// Next sets the fates of the next calls, one for each, after the fates that were set
// before. Then all goes well again.
func (p *Provider) Next(fates ...Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fates = append(p.fates, fates...)
}

// NextLooks sets how the next look-ups fare, one after the other, as [Provider.Next] does
// for calls.
func (p *Provider) NextLooks(looks ...Look) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks = append(p.looks, looks...)
}

// LookUp returns the effects with a key, for the look-up of a phase ([idem.LookUp]).
// Without a call with the key, LookUp returns no effects. It also finds forgotten keys, and
// keys that were sent as references to a system without keys. The error matches
// [ErrNoAnswer].
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

// arrive lets the due calls arrive. p must be locked.
func (p *Provider) arrive() {
	now := p.now()
	p.coming = slices.DeleteFunc(p.coming, func(c coming) bool {
		if c.at.After(now) {
			return false
		}
		_, _ = p.effect(c.method, c.path, c.key, c.body, c.at) // its caller hears nothing
		return true
	})
}

// Forget makes all keys new, as a provider does after its time.
func (p *Provider) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrive()
	for _, e := range p.effects {
		e.forgotten = true
	}
}

// Calls returns how many calls have arrived, without GET and HEAD.
func (p *Provider) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// Effects returns copies of all effects, oldest first; with paths, only the effects on one
// of the paths.
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

// Call is a call by name, for fakes of a Go interface: args are compared as JSON
// under the same key. The error matches [ErrNoAnswer], is a [*Refusal], or says that
// args have no JSON form. A call that was delayed past ctx returns its cause too.
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

// RoundTrip implements [http.RoundTripper]: the provider's answer, whatever the host.
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
		// Without any answer, Go's client would send a request with a key again by itself.
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

// handle takes a call, has its effect, and delays or loses the answer by the call's fate.
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
		return Effect{}, nil, fate
	}
	e, refused := p.effect(method, path, key, body, p.now())
	return e, refused, fate
}

// effect has the effect of a call that arrives now, unless its key is known. p must be locked.
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
