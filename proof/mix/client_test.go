package mix

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/state"
)

// customer is a client.
type customer struct {
	name, key, body string
	size            int // of the rest of the body
	at              time.Duration
	rounds          int
	pauses          []time.Duration // between its rounds

	round int
	probe bool // it asks after the faults, and doesn't give up soon
	begun time.Time
	last  string
	erred int // answers ago, the program failed with an error; 0 for never
}

func (c *customer) intent() string { return c.key + "|" + c.body }

const grace = time.Minute // of the completer

// send sends the request of a client.
func (w *world) send(c *customer) {
	if w.deployAt > 0 && w.fleet.version == 1 && time.Since(w.begin) >= w.deployAt {
		w.fleet.version, w.fleet.now = 2, nil
		w.note("deploy", "version 2: %s", w.scripts[1])
	}
	c.round++
	p := w.serving()
	w.note(c.name, "asks %s for %s", p.name, c.intent())
	req := idem.Request{
		Method: http.MethodPost, Path: "/payments", Route: "POST /payments", Scope: "alice",
		Header: http.Header{idem.KeyHeader: {c.key}, "Content-Type": {"application/octet-stream"}},
		Body:   append([]byte(c.intent()+" "), w.pad(c.size, false, c.intent())...),
	}
	req.ReadFirst = w.readFirst
	if w.former {
		req.Scope = ""
	}
	if w.odds(0.4, retrySign, c.name, c.round) {
		req.Header["Retry-Attempt"] = []string{[]string{"1", "1", "2", "0", "-1", "1, 2"}[w.hash("sign", c.name, c.round)%6]}
	}
	n := w.fleet.n + 1
	w.ledger.keys[fmt.Sprint("request ", n)] = c.key
	w.invoke(p, "request", w.limit, func(ctx context.Context) func() {
		res, err := p.engine.Serve(ctx, req, func(ctx context.Context) (idem.Response, error) { return p.handle(ctx, string(req.Body)) })
		return func() {
			a := w.heard(fmt.Sprint("request-", n), c, res, err)
			if !w.calm.Load() && w.odds(min(1, 0.05*w.rate), hopLost, c.name, c.round) {
				w.fired[hopLost]++
				w.note(c.name, "its answer %s is lost", a.text)
				a = reply{text: "nothing"}
			}
			w.hears(c, a)
		}
	}, func() { w.hears(c, reply{text: "nothing"}) })
}

// reply is how a client understands an answer.
type reply struct {
	final bool
	text  string
}

// hears has a client go on after an answer.
func (w *world) hears(c *customer, a reply) {
	w.note(c.name, "hears %s", a.text)
	c.last = a.text
	if strings.HasPrefix(c.last, "500") {
		c.erred = 1
	} else if c.erred > 0 {
		c.erred++
	}
	if c.probe {
		w.probed(c, a)
		return
	}
	if !a.final && c.round < c.rounds {
		w.after(c.pauses[(c.round-1)%len(c.pauses)], func() { w.send(c) })
		return
	}
	if w.left--; w.left == 0 {
		w.calmDown()
	}
}

// calmDown ends the faults. Honest clients then ask for what was asked for before, or
// nobody does.
func (w *world) calmDown() {
	w.note("faults", "are over")
	w.calm.Store(true)
	if w.odds(0.2, absent) {
		w.after(longest+time.Minute, w.judgement)
		return
	}
	seen := make(map[string]bool)
	for _, c := range w.customers {
		if seen[c.intent()] {
			continue
		}
		seen[c.intent()] = true
		probe := &customer{name: "probe " + c.body, key: c.key, body: c.body, size: c.size, probe: true}
		w.probes++
		w.after(longest+time.Minute, func() {
			probe.begun = time.Now()
			w.send(probe)
		})
	}
}

// patience is how long an honest client asks at least: longer than a completer that
// fails time and again needs until it gives up. If a call is declined and its handler doesn't
// answer with that, each try asks for within, and calls once more.
func (w *world) patience() time.Duration {
	longest := 16 * time.Hour
	if !slices.ContainsFunc(w.provider.all, func(p *payment) bool { return p.declined }) {
		return longest
	}
	for _, s := range w.scripts {
		for _, st := range s.steps {
			if st.look {
				longest = max(longest, time.Duration(w.maxTries)*(st.within+time.Hour))
			}
		}
	}
	return longest
}

// probed has a probe go on, or judges what it has found.
func (w *world) probed(c *customer, a reply) {
	if !a.final && time.Since(c.begun) < w.patience() {
		w.after(min(time.Second<<min(c.round, 12), 20*time.Minute), func() { w.send(c) })
		return
	}
	if !a.final {
		rec := w.load(w.ledger.pks[c.key])
		switch {
		case rec != nil && (w.listed(rec) || w.ledger.own[rec.ID]):
		case 0 < c.erred && c.erred <= 6: // the program's mistake, by an error or, now and then, by an answer that isn't stored: people hear of it when the key's time is over
		default:
			w.fail(notForEver+": after %d tries in %s without a fault the client still hears %s, and nobody is told", c.round, w.patience(), c.last)
		}
	}
	if w.probes--; w.probes == 0 {
		w.judgement()
	}
}

// judgement is when nobody asks any more, and no operator decides.
func (w *world) judgement() {
	w.swept = true
	w.sweeps(6)
}

// sweeps sweeps some times, for as long as a key is remembered and a completer tries, and
// ends the episode.
func (w *world) sweeps(n int) {
	w.sweep(func() {
		if n == 1 {
			w.finished = true
			return
		}
		w.after(max(w.retention/3+time.Hour, w.patience()/5), func() { w.sweeps(n - 1) })
	})
}

// heard checks an answer as it leaves the server, and says how its client understands
// it.
func (w *world) heard(by string, c *customer, res idem.Result, err error) reply {
	a, ours := readAnswer(res.Body)
	kept := res.Replayed || !res.Expires.IsZero()
	switch {
	case err != nil:
		w.fail(oneAnswer+": an error leaves Serve: %v", err)
		return reply{text: err.Error()}
	case !ours:
		return w.engineSays(c, by, res)
	case a.intent != c.intent():
		w.fail(oneAnswer+": a client that asks for %s gets the answer of %s", c.intent(), a.intent)
	}
	text := fmt.Sprintf("%d of the handler (%s, kept: %t, replayed: %t)", res.Status, a.where, kept, res.Replayed)
	op := w.ledger.op(a.op)
	rec := w.load(w.ledger.pks[c.key])
	if rec != nil && rec.ID != a.op {
		rec = nil
	}
	switch {
	case kept:
		w.keeps(op, rec, a, res)
	case res.Unstored:
		if rec != nil && (len(rec.Phases) > 0 || rec.Input != nil || len(rec.Doubts) > 0) {
			w.fail(toldIsKept+": an answer is marked as not stored, and its operation goes on with %d phases", len(rec.Phases))
		}
		text += ", marked as not stored"
	case res.Status < http.StatusInternalServerError:
		w.freed(op, rec, text)
	case w.calm.Load():
		w.ledger.own[a.op] = true // the handler itself fails, for good
		return reply{final: rec == nil || state.Freed(rec), text: text}
	}
	return reply{final: kept || res.Status < http.StatusInternalServerError, text: text}
}

// engineSays checks an answer that the engine gives in place of the handler.
func (w *world) engineSays(c *customer, by string, res idem.Result) reply {
	var p struct{ Code, Detail string }
	_ = json.Unmarshal(res.Body, &p) // without a code, its status tells enough
	text := fmt.Sprintf("%d %s", res.Status, p.Code)
	rec := w.load(w.ledger.pks[c.key])
	if rec != nil && strings.HasPrefix(p.Detail, "Nothing was done") && w.ledger.op(rec.ID).passes[by] > 0 {
		w.fail(toldIsKept+": the client hears %q (%s), and its own attempt has passed phases", p.Detail, p.Code)
	}
	switch p.Code {
	case "":
		if res.Replayed && rec != nil && len(rec.Settled) == 0 {
			w.fail(oneAnswer+": a replay (%d) is no answer of the handler, and nobody has decided", res.Status)
		}
		return reply{final: res.Replayed, text: text + "of an operator"}
	case "idempotency_unfinished":
		if res.Header.Get("Retry-After") == "" {
			w.fail(notForEver + ": nobody says when the client of an unfinished operation may retry")
		}
	case "idempotency_key_mismatch", "idempotency_stuck", "idempotency_answer_not_kept":
		return reply{final: true, text: text}
	}
	return reply{text: text}
}
