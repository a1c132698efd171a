package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// desk is a client and an endpoint under a preset. Its time is the bubble's, so that reported
// waits are exact.
type desk struct {
	*testing.T
	preset func(*idem.Options)
	key    string // in the contract's form: bare or in quotes
	also   string // a method besides POST
	engine *idem.Engine
	runs   int
}

// set starts again, on another store or with more options.
func (d *desk) set(s store.Store, more ...func(*idem.Options)) {
	d.engine = idem.New(s, append([]func(*idem.Options){callertest.Anybody, d.preset}, more...)...)
}

// ask sends a request and lets the handler do what fn does.
func (d *desk) ask(r idem.Request, fn handler) idem.Result { return d.askFor(20*time.Second, r, fn) }

func (d *desk) askFor(limit time.Duration, r idem.Request, fn handler) idem.Result {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), limit)
	defer cancel()
	res, err := d.engine.Serve(ctx, r, func(ctx context.Context) (idem.Response, error) { d.runs++; return fn(ctx) })
	if err != nil && !res.Passed {
		d.Fatal(err)
	}
	return res
}

// charge is the request of most situations.
func (d *desk) charge(keys ...string) idem.Request {
	r := idem.Request{
		Method: "POST", Path: "/charges", Identity: idem.Identity{Kind: "jwt", Subject: "acct_1"}, Body: []byte(`{"amount":2000}`),
		Header: http.Header{"Content-Type": {"application/json"}},
	}
	if keys != nil {
		r.Header["Idempotency-Key"] = keys
	}
	return r
}

// charged is the endpoint's answer to a successful charge.
func charged(ctx context.Context) (idem.Response, error) { return says(201)(ctx) }

func says(status int, header ...string) handler {
	h := http.Header{"Content-Type": {"application/json"}, "Set-Cookie": {"a=b"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return func(context.Context) (idem.Response, error) {
		return idem.Response{Status: status, Header: h, Body: []byte("{}")}, nil
	}
}

var errProvider = errors.New("the provider is down: secret")

func failing(context.Context) (idem.Response, error) { return idem.Response{}, errProvider }

// sends sends one request.
func sends(fn handler, keys ...string) func(*desk) idem.Result {
	return func(d *desk) idem.Result { return d.ask(d.charge(keys...), fn) }
}

// once sends the contract's key.
func once(fn handler) func(*desk) idem.Result {
	return func(d *desk) idem.Result { return d.ask(d.charge(d.key), fn) }
}

// twice sends the same request again, after fn has answered the first.
func twice(fn handler) func(*desk) idem.Result {
	return func(d *desk) idem.Result { once(fn)(d); return once(charged)(d) }
}

// then sends a changed request after the first one.
func then(edit func(*desk, *idem.Request)) func(*desk) idem.Result {
	return func(d *desk) idem.Result {
		once(charged)(d)
		r := d.charge(d.key)
		edit(d, &r)
		return d.ask(r, charged)
	}
}

// during sends a changed request while the first one works.
func during(edit func(*idem.Request)) func(*desk) idem.Result {
	return func(d *desk) (twin idem.Result) {
		once(func(ctx context.Context) (idem.Response, error) {
			time.Sleep(3 * time.Second) //nolint:forbidigo // virtual
			r := d.charge(d.key)
			edit(&r)
			twin = d.ask(r, charged)
			return charged(ctx)
		})(d)
		return twin
	}
}

// onto has the request sent to another engine.
func onto(s func() store.Store, send func(*desk) idem.Result, more ...func(*idem.Options)) func(*desk) idem.Result {
	return func(d *desk) idem.Result { d.set(s(), more...); return send(d) }
}

func memory() store.Store { return new(idem.MemoryStore) }

const month = 31 * 24 * time.Hour

// aMonthLater sends the same request again after a month.
func aMonthLater(d *desk) idem.Result {
	once(charged)(d)
	time.Sleep(month) //nolint:forbidigo // virtual
	return once(charged)(d)
}

func unknown(ctx context.Context) (idem.Response, error) {
	return idem.Response{}, paying(ctx, "charged", func(*idem.Tx) error { return errProvider }, idem.NotIdempotent())
}

func refusedBody(err error) func(*desk) idem.Result {
	return func(d *desk) idem.Result {
		return idem.Result{Response: d.engine.Refuse(d.Context(), d.charge(d.key), err)}
	}
}

// corrupt is a store with an unreadable record.
type corrupt struct{ downStore }

func (corrupt) Claim(context.Context, store.Claim) (*store.Record, error) {
	return nil, idem.ErrCorrupt
}

// What each situation comes to under a contract: the draft of the IETF (Idempotency-Key-07),
// Stripe's API v2 and v1. In a row: status, the number of the handler's runs, the error's code,
// whether it is a replay, whether the key was ignored or has a lifetime, Retry-After,
// Stripe-Should-Retry, and the ids of the request and of the first one. What problems say in
// each contract is in TestProblems.
func TestPresets(t *testing.T) {
	t.Parallel()
	const (
		made, again, replay = "201 after 1 kept", "201 after 2 kept", "201 after 1 replayed kept"
		missing             = "400 after 0 idempotency_key_missing"
		invalid, badKey     = "400 after 0 idempotency_key_invalid", "400 after 0 idempotency_key_invalid retry false"
		other, others       = "422 after 1 idempotency_key_mismatch kept", "400 after 1 kept retry false"
		slowDown            = "429 after 1 wait 1 retry true" // a rate limiter's answer, untouched: the key is free
	)
	body := func(_ *desk, r *idem.Request) { r.Body = []byte(`{"amount":9900}`) }
	small := func(o *idem.Options) { o.MaxBody = 1 }
	full := func(o *idem.Options) { o.Quota = &gate{wait: 1500 * time.Millisecond} }
	for name, tt := range map[string]struct {
		play             func(*desk) idem.Result
		ietf, stripe, v1 string // v1 "": as v2
	}{
		"new":          {once(charged), made, made, ""},
		"replay":       {twice(charged), replay, replay, ""},
		"other body":   {then(body), other, others, ""},
		"other path":   {then(func(_ *desk, r *idem.Request) { r.Path = "/refunds" }), other, others, ""},
		"other method": {then(func(d *desk, r *idem.Request) { r.Method = d.also }), other, others, "201 after 2 ignored"},
		"other user":   {then(func(_ *desk, r *idem.Request) { r.Scope = "acct_2" }), again, again, ""},
		"other token":  {then(func(_ *desk, r *idem.Request) { r.Header.Set("Authorization", "Bearer anew") }), replay, replay, ""},

		"no key": {sends(charged), missing, missing + " retry false", "201 after 1"},
		"no key, other method": {func(d *desk) idem.Result {
			r := d.charge()
			r.Method = d.also
			return d.ask(r, charged)
		}, missing, "201 after 1", ""},
		"key empty":       {sends(charged, ""), invalid, badKey, ""},
		"key empty quote": {sends(charged, `""`), invalid, badKey, ""},
		"key too long":    {sends(charged, `"`+strings.Repeat("k", 256)+`"`), invalid, badKey, ""},
		"key twice":       {sends(charged, `"k"`, `"k"`), invalid, badKey, ""},
		"keys in a list":  {sends(charged, `"k", "k"`), invalid, badKey, ""},
		"key with umlaut": {sends(charged, "schlüssel"), invalid, badKey, ""},
		"key is a number": {sends(charged, "4711"), invalid, made, ""},
		"key bare":        {func(d *desk) idem.Result { sends(charged, `"k"`)(d); return sends(charged, "k")(d) }, replay, replay, ""}, // only new keys need quotes
		"key quoted":      {func(d *desk) idem.Result { once(charged)(d); return sends(charged, `"k";v=1`)(d) }, replay, replay, ""},
		"GET with a key": {func(d *desk) idem.Result {
			r := d.charge(d.key)
			r.Method = "GET"
			d.ask(r, charged)
			return d.ask(r, charged)
		}, "201 after 2 ignored", "201 after 2 ignored", ""},

		"in flight": {
			during(func(*idem.Request) {}),
			"409 after 1 idempotency_in_flight kept wait 5", "409 after 1 idempotency_key_in_use kept wait 5 retry true", "",
		},
		"other body in flight": {during(func(r *idem.Request) { r.Body = nil }), other, others, ""},

		"handler fails":       {once(failing), "500 after 1 internal_error", "500 after 1 internal_error retry true", ""},
		"after it has failed": {twice(failing), again, again, ""},
		"after a 400":         {twice(says(400)), "400 after 1 replayed kept", again, ""},
		"after a 401":         {twice(says(401)), again, again, ""},
		"after a 402":         {twice(says(402)), "402 after 1 replayed kept", "402 after 1 replayed kept retry false", ""},
		"after a 409":         {twice(says(409)), again, again, ""},
		"after a 429":         {twice(says(429)), again, again, ""},
		"after a 500":         {twice(says(500)), again, again, "500 after 1 replayed kept retry false"},
		"after a 503":         {twice(says(503)), again, again, "503 after 1 replayed kept retry false"},
		"a 500":               {once(says(500, "Stripe-Should-Retry", "true")), "500 after 1 retry true", "500 after 1 retry true", "500 after 1 kept retry false"},
		"rate limited":        {once(says(429, "Retry-After", "1", "Stripe-Should-Retry", "true")), slowDown, slowDown, ""},
		"with a request id":   {once(says(201, "Request-Id", "req_1")), made + " id req_1", made + " id req_1 first req_1", ""},
		"after a request id":  {twice(says(201, "Request-Id", "req_1")), replay, replay + " id req_1 first req_1", ""},

		"expired": {aMonthLater, again, again, ""},
		"answer not kept": {
			onto(memory, twice(charged), small),
			"410 after 1 idempotency_answer_not_kept kept", "410 after 1 idempotency_answer_not_kept kept retry false", "",
		},
		"stuck":          {func(d *desk) idem.Result { once(unknown)(d); return once(unknown)(d) }, "409 after 1 idempotency_stuck", "409 after 1 idempotency_stuck retry false", ""},
		"store down":     {onto(func() store.Store { return downStore{} }, once(charged)), "503 after 0 store_unavailable wait 1", "503 after 0 store_unavailable wait 1 retry true", ""},
		"over the quota": {onto(memory, once(charged), full), "429 after 0 quota_exceeded wait 2", "429 after 0 rate_limit wait 2 retry true", ""},
		"too little time": {
			func(d *desk) idem.Result { return d.askFor(300*time.Millisecond, d.charge(d.key), charged) },
			"503 after 0 no_time_left wait 1", "503 after 0 no_time_left wait 1 retry true", "",
		},
		"record is corrupt": {onto(func() store.Store { return corrupt{} }, once(charged)), "500 after 0 record_corrupt", "500 after 0 record_corrupt retry false", ""},
		"too large a body":  {refusedBody(idem.ErrTooLarge), "413 after 0 request_too_large", "413 after 0 request_too_large retry false", ""},
		"undecodable body":  {refusedBody(idem.ErrRequest), "400 after 0 request_invalid", "400 after 0 request_invalid retry false", ""},
	} {
		if tt.v1 == "" {
			tt.v1 = tt.stripe
		}
		for want, d := range map[[2]string]desk{
			{"IETF", tt.ietf}:     {preset: idem.IETF, key: `"k"`, also: "PATCH"},
			{"Stripe", tt.stripe}: {preset: idem.Stripe, key: "k", also: "DELETE"},
			{"StripeV1", tt.v1}:   {preset: idem.StripeV1, key: "k", also: "DELETE"},
		} {
			synctest.Test(t, func(t *testing.T) {
				d.T = t
				d.set(&idem.MemoryStore{})
				res := tt.play(&d)
				if got := brief(d.runs, res); got != want[1] {
					t.Errorf("%s, %s: got %s, want %s", want[0], name, got, want[1])
				}
			})
		}
	}
}

// brief is an answer in the form of the table.
func brief(runs int, r idem.Result) string {
	words := fmt.Sprint(r.Status, " after ", runs)
	if _, code, ok := strings.Cut(string(r.Body), `"code":"`); ok {
		code, _, _ = strings.Cut(code, `"`)
		words += " " + code
	}
	for _, h := range [][2]string{
		{idem.ReplayedHeader, " replayed"},
		{"Idempotency-Status", " ignored"},
		{"Idempotency-Expires", " kept"},
		{"Retry-After", " wait *"},
		{"Stripe-Should-Retry", " retry *"},
		{"Request-Id", " id *"},
		{"Original-Request", " first *"},
	} {
		if v := r.Header.Get(h[0]); v != "" {
			words += strings.Replace(h[1], "*", v, 1)
		}
	}
	return words
}
