package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

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
func charged(context.Context) (idem.Response, error) { return says(201, `{"id":"ch_1"}`)(nil) }

func says(status int, body string, header ...string) func(context.Context) (idem.Response, error) {
	h := http.Header{"Content-Type": {"application/json"}, "Set-Cookie": {"a=b"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return func(context.Context) (idem.Response, error) {
		return idem.Response{Status: status, Header: h, Body: []byte(body)}, nil
	}
}

// twice sends the same request again, after fn has answered the first.
func twice(fn func(context.Context) (idem.Response, error)) func(*desk) idem.Result {
	return func(d *desk) idem.Result {
		d.ask(d.charge(d.key), fn)
		return d.ask(d.charge(d.key), charged)
	}
}

// other sends another request with the first request's key.
func other(edit func(*desk, *idem.Request)) func(*desk) idem.Result {
	return func(d *desk) idem.Result {
		d.ask(d.charge(d.key), charged)
		r := d.charge(d.key)
		edit(d, &r)
		return d.ask(r, charged)
	}
}

func keys(values ...string) func(*desk) idem.Result {
	return func(d *desk) idem.Result { return d.ask(d.charge(values...), charged) }
}

func after(lifetime time.Duration, more func(*idem.Options)) func(*desk) idem.Result {
	return func(d *desk) idem.Result {
		d.options(more)
		d.ask(d.charge(d.key), charged)
		time.Sleep(lifetime) //nolint:forbidigo // a bubble's
		return d.ask(d.charge(d.key), charged)
	}
}

const month = 31 * 24 * time.Hour

var situations = map[string]func(*desk) idem.Result{
	"new":    func(d *desk) idem.Result { return d.ask(d.charge(d.key), charged) },
	"replay": twice(charged),

	"other body":   other(func(_ *desk, r *idem.Request) { r.Body = []byte(`{"amount":9900}`) }),
	"other path":   other(func(_ *desk, r *idem.Request) { r.Path = "/refunds" }),
	"other method": other(func(d *desk, r *idem.Request) { r.Method = d.also }),
	"other user":   other(func(_ *desk, r *idem.Request) { r.Scope = "acct_2" }),
	"other token":  other(func(_ *desk, r *idem.Request) { r.Header.Set("Authorization", "Bearer anew") }),

	"no key": keys(),
	"no key, other method": func(d *desk) idem.Result {
		r := d.charge()
		r.Method = d.also
		return d.ask(r, charged)
	},
	"key empty":       keys(""),
	"key empty quote": keys(`""`),
	"key of spaces":   keys("  "),
	"key too long":    keys(`"` + strings.Repeat("k", 256) + `"`),
	"key twice":       keys(`"k"`, `"k"`),
	"keys in a list":  keys(`"k", "k"`),
	"key is a number": keys("4711"),
	"key with umlaut": keys("schlüssel"),
	"key bare": func(d *desk) idem.Result {
		d.ask(d.charge(`"k"`), charged)
		return d.ask(d.charge("k"), charged)
	},
	"key quoted": func(d *desk) idem.Result {
		d.ask(d.charge(d.key), charged)
		return d.ask(d.charge(`"k";v=1`), charged)
	},
	"GET with a key": func(d *desk) idem.Result {
		r := d.charge(d.key)
		r.Method = "GET"
		d.ask(r, charged)
		return d.ask(r, charged)
	},

	"in flight": func(d *desk) (twin idem.Result) {
		d.ask(d.charge(d.key), func(ctx context.Context) (idem.Response, error) {
			time.Sleep(3 * time.Second) //nolint:forbidigo // a bubble's
			twin = d.ask(d.charge(d.key), charged)
			return charged(ctx)
		})
		return twin
	},
	"other body in flight": func(d *desk) (twin idem.Result) {
		d.ask(d.charge(d.key), func(ctx context.Context) (idem.Response, error) {
			r := d.charge(d.key)
			r.Body = nil
			twin = d.ask(r, charged)
			return charged(ctx)
		})
		return twin
	},
	"handler fails":       func(d *desk) idem.Result { return d.ask(d.charge(d.key), failing) },
	"after it has failed": twice(failing),
	"after a 500":         twice(says(500, "no")),
	"after a 503":         twice(says(503, "no")),
	"after a 400":         twice(says(400, "no")),
	"after a 401":         twice(says(401, "no")),
	"after a 402":         twice(says(402, "no")),
	"after a 409":         twice(says(409, "no")),
	"rate limited": func(d *desk) idem.Result {
		return d.ask(d.charge(d.key), says(429, "slow down", "Retry-After", "1", "Stripe-Should-Retry", "true", "Stripe-Rate-Limited-Reason", "global-rate"))
	},
	"after a 429": twice(says(429, "slow down")),
	"a 500": func(d *desk) idem.Result {
		return d.ask(d.charge(d.key), says(500, "no", "Stripe-Should-Retry", "true"))
	},
	"with a request id": func(d *desk) idem.Result {
		return d.ask(d.charge(d.key), says(201, made, "Request-Id", "req_1"))
	},
	"after a request id": twice(says(201, made, "Request-Id", "req_1")),

	"expired":       after(month, func(*idem.Options) {}),
	"expired, told": after(month, func(o *idem.Options) { o.Tombstone = month }),
	"stuck":         stuckCharge,
	"answer not kept": func(d *desk) idem.Result {
		d.options(func(o *idem.Options) { o.MaxBody = 4 })
		return twice(charged)(d)
	},
	"store down": func(d *desk) idem.Result { d.store(downStore{}); return d.ask(d.charge(d.key), charged) },
	"over the quota": func(d *desk) idem.Result {
		d.options(func(o *idem.Options) { o.Quota = &gate{wait: 1500 * time.Millisecond} })
		return d.ask(d.charge(d.key), charged)
	},
	"too little time":   hurried,
	"too large a body":  refusedBody(idem.ErrTooLarge),
	"undecodable body":  refusedBody(idem.ErrRequest),
	"record is corrupt": func(d *desk) idem.Result { d.store(corrupt{}); return d.ask(d.charge(d.key), charged) },
}

var errProvider = errors.New("the provider is down: secret")

func failing(context.Context) (idem.Response, error) { return idem.Response{}, errProvider }

// stuckCharge is a call with an unknown outcome.
func stuckCharge(d *desk) idem.Result {
	unknown := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "charged", func(context.Context, *idem.Tx) (int, error) { return 0, errProvider }, idem.NotIdempotent())
		return idem.Response{}, err
	}
	d.ask(d.charge(d.key), unknown)
	return d.ask(d.charge(d.key), unknown)
}

func hurried(d *desk) idem.Result {
	ctx, cancel := context.WithTimeout(d.Context(), 300*time.Millisecond)
	defer cancel()
	return d.askIn(ctx, d.charge(d.key), charged)
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
