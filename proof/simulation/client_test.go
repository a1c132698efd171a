package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
)

// business is what a client wants done, once.
type business struct {
	tenant, key, route string
	order              order
	at                 time.Duration // when its client begins
	clients            int           // that ask for it at once
	rounds             int           // for how long they ask
	outlives           bool          // they ask again after their key's time, if its call is in doubt

	status int    // of the answer that counts; 0: none has come
	answer string // its body
	said   string // how it ended for its clients
}

// journal is a client's journal, which outlives its process.
type journal struct {
	mu      sync.Mutex
	entries map[string]client.Entry
}

func (j *journal) Begin(_ context.Context, e client.Entry) (client.Entry, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known, ok := j.entries[e.Operation]; ok {
		return known, true, nil
	}
	j.entries[e.Operation] = e
	return e, false, nil
}

func (j *journal) Update(_ context.Context, e client.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known, ok := j.entries[e.Operation]; ok && known.Key == e.Key {
		j.entries[e.Operation] = e
	}
	return nil
}

// keyLife is how long clients count on their keys: less than the retention, by more
// than the clocks may be wrong.
const keyLife = retention - 2*widest

// start has the clients of a business begin.
func (w *world) start(b *business) {
	for i := range b.clients {
		name := fmt.Sprintf("client %s.%d", b.order.Order, i)
		w.left++
		w.at(w.begin.Add(b.at).Add(time.Duration(i)*w.between(0+time.Microsecond, 50*time.Millisecond)), func() {
			w.note(name, "wants %s %s under %s/%s", b.route, b.order.Order, b.tenant, b.key)
			w.actors.Go(func() {
				said := w.persist(name, b)
				w.arrive(&call{actor: name, op: "ends", take: func(*call) {
					b.said = said
					if said == mismatch && !w.shares(b) {
						w.fail("%s: refused as a mismatch, and nobody else of %s has its key", b.order.Order, b.tenant)
					}
					if op := w.ledger.ops[text(w.db.Item(books, b.order.Order), "op")]; said == mismatch && op != nil && holds(op.item) {
						w.fail("%s: refused as a mismatch, and %s is its own", b.order.Order, w.name(op.pk))
					}
					w.left--
					w.note(name, "ends: %s", said)
				}})
			})
		})
	}
}

const mismatch = "mismatch"

// shares reports whether a tenant uses a key for something else too.
func (w *world) shares(b *business) bool {
	return slices.ContainsFunc(w.business, func(o *business) bool { return o != b && o.tenant == b.tenant && o.key == b.key })
}

// persist sends the request until its outcome is known, or the client gives up.
func (w *world) persist(name string, b *business) string {
	memory := &journal{entries: make(map[string]client.Entry)}
	for round := range b.rounds {
		status, body, err := w.process(name, b, memory)
		switch {
		case errors.Is(err, errOver):
			return "the episode is over"
		case errors.Is(err, client.ErrExpired):
			return "the key is too old"
		case final(status, body):
			if again := w.odds(0.3, name, "again"); !again || round > 2 {
				return fmt.Sprint(status)
			}
		case status == http.StatusUnprocessableEntity:
			return mismatch
		case strings.Contains(body, "idempotency_stuck"):
			return "stuck"
		}
		pause := time.Duration(1+w.hash(name, round)%60_000) * time.Millisecond
		if w.odds(0.1, name, round, "long") {
			pause *= 20
		}
		if w.rolls != nil && w.odds(0.15, name, round, "steps") {
			pause += time.Duration(10+w.hash(name, round, "minutes")%35) * time.Minute
		}
		if !w.rest(pause) {
			return "the episode is over"
		}
	}
	if !b.outlives || !w.rest(retention+2*widest+time.Duration(w.hash(name, "again")%120)*time.Minute) {
		return "gives up"
	}
	v, err := w.ask(w.ctx, name, "asks", "whether its call is in doubt", nil, func(c *call) { c.give(w.inDoubt(b.order.Order), nil) })
	if doubt, _ := v.(bool); err != nil || !doubt {
		return "gives up"
	}
	status, _, _ := w.process(name, b, &journal{entries: make(map[string]client.Entry)}) // without an answer: 0
	return fmt.Sprint("after its key's time: ", status)
}

// inDoubt reports whether an order was charged by an operation that isn't done.
func (w *world) inDoubt(order string) bool {
	for _, c := range w.provider.keys {
		if c.order == order && !c.declined && text(w.ledger.ops[c.op].last, "st") != "done" {
			w.counts[timeEnds]++
			return true
		}
	}
	return false
}

func (w *world) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// process is a process of the client: it may crash at any time.
func (w *world) process(name string, b *business, memory *journal) (status int, body string, err error) {
	v, err := w.ask(w.ctx, name, "begins", "", nil, func(c *call) {
		if w.fires(clientCrash, 0.05) {
			life := w.between(time.Millisecond, 5*time.Second)
			w.note(name, "will crash in %s", life)
			c.give(life, nil)
			return
		}
		c.give(time.Hour, nil)
	})
	if err != nil {
		return 0, "", errOver
	}
	life, _ := v.(time.Duration)
	ctx, cancel := context.WithTimeout(w.ctx, life)
	defer cancel()
	tr := client.New(&door{w, name, b}, func(o *client.Options) {
		o.Journal, o.KeyLifetime, o.NoBudget, o.AttemptTimeout = memory, keyLife, true, 40*time.Second
		o.InitialDelay, o.MaxDelay = 1, 1 // no chance: see door
	})
	req, err := http.NewRequestWithContext(client.WithOperation(ctx, b.order.Order), http.MethodPost, "https://api"+b.route, strings.NewReader(encode(b.order)))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set(idem.KeyHeader, b.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", err
	}
	body = string(read)
	if strings.Contains(body, "idempotency_answer_not_kept") {
		_, _ = w.ask(w.ctx, name, "hears", "that its answer is lost", nil, func(c *call) { // the episode fails
			w.fail("%s: its answer was not kept, and it would fit", b.order.Order)
			c.give(nil, nil)
		})
	}
	if final(resp.StatusCode, body) {
		_, err = w.ask(w.ctx, name, "hears", "", nil, func(c *call) {
			w.heard(name, b, resp.StatusCode, body)
			c.give(nil, nil)
		})
	}
	return resp.StatusCode, body, err
}

// final reports whether a client takes an answer of a handler for the outcome.
func final(status int, body string) bool {
	return status == http.StatusCreated || status == http.StatusPaymentRequired || status == http.StatusConflict && strings.Contains(body, `"order"`)
}

// heard checks an answer that a client takes for the outcome.
func (w *world) heard(name string, b *business, status int, body string) {
	var r receipt
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		w.fail("%s: the answer %d is no receipt: %s", b.order.Order, status, body)
		return
	}
	if op := w.ledger.ops[r.Op]; op != nil {
		w.note(name, "hears %d %s", status, strings.Replace(body, r.Op, w.name(op.pk), 1))
	}
	switch {
	case r.Tenant != b.tenant:
		w.fail("%s of %s: the answer is of tenant %s", b.order.Order, b.tenant, r.Tenant)
	case r.Order != b.order.Order || r.Memo != b.order.Memo:
		w.fail("%s: the answer is of order %s", b.order.Order, r.Order)
	case b.answer == "":
		b.status, b.answer = status, body
	case b.status != status || b.answer != body:
		w.fail("%s: two answers: %d %s, then %d %s", b.order.Order, b.status, b.answer, status, body)
	}
}

// door is the client's way to the API, through the network and the gateway.
type door struct {
	w    *world
	name string
	b    *business
}

// RoundTrip sends a request as the gateway does.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	w := d.w
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	// The client draws its waits from a source without a seed, here some nanoseconds:
	// the next whole microsecond is the same whatever it draws.
	if !w.rest(time.Until(time.Now().Truncate(time.Microsecond).Add(2 * time.Microsecond))) {
		return nil, errOver
	}
	ev := request{
		Version: "2.0", RouteKey: "POST " + r.URL.Path, RawPath: r.URL.Path, Body: string(body), Headers: make(map[string]string),
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			DomainName: "api", HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: r.Method, Path: r.URL.Path},
			Authorizer: &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "us", "sub": d.b.tenant}},
			},
		},
	}
	for name := range r.Header {
		ev.Headers[strings.ToLower(name)] = r.Header.Get(name)
	}
	if w.odds(0.1, d.name, "lies") {
		ev.Headers["x-stainless-retry-count"] = "1" // and those of the client's retries are true
	}
	b, err := json.Marshal(ev)
	if err != nil {
		return nil, err
	}
	v, err := w.ask(r.Context(), d.name, "POST", r.URL.Path, nil, func(c *call) { d.pass(c, payload{json: b}) })
	re, _ := v.(*response)
	if err != nil || re == nil {
		return nil, errors.Join(err, errNet)
	}
	resp := &http.Response{
		StatusCode: re.StatusCode, Header: make(http.Header), Body: io.NopCloser(bytes.NewReader([]byte(re.Body))), Request: r,
		ContentLength: int64(len(re.Body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	for name, v := range re.Headers {
		resp.Header.Set(name, v)
	}
	return resp, nil
}

// pass is the network and the gateway.
func (d *door) pass(c *call, event payload) {
	w := d.w
	w.note(c.actor, "POST %s %s", d.b.route, d.b.order.Order)
	there := w.between(2*time.Millisecond, 40*time.Millisecond)
	if w.fires(requestLost, 0.02) {
		w.after(time.Second, func() { c.give(nil, errNet) })
		return
	}
	send := func(told func(*response, error)) {
		w.fleet.invoke(apiFunction, event, func(out []byte, err error) {
			re := new(response)
			if err == nil {
				err = json.Unmarshal(out, re)
			}
			if err != nil {
				re = &response{StatusCode: http.StatusBadGateway, Body: "the function crashed"}
			}
			told(re, nil)
		})
	}
	if w.fires(duplicated, 0.01) {
		w.after(there+w.between(time.Millisecond, 2*time.Second), func() { send(func(*response, error) {}) })
	}
	w.after(there, func() {
		send(func(re *response, err error) {
			if w.fires(answerLost, 0.03) {
				w.note(c.actor, "the answer %d is lost", re.StatusCode)
				w.after(time.Second, func() { c.give(nil, errNet) })
				return
			}
			w.note(c.actor, "is answered %d", re.StatusCode)
			w.after(w.between(2*time.Millisecond, 40*time.Millisecond), func() { c.give(re, err) })
		})
	})
}
