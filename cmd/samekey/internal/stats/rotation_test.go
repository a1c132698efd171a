package stats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/cmd/samekey/internal/stats"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// These tests rotate the fingerprint's secret in virtual time. Clients send honest retries
// as long as answers are kept, while one generation of a function follows another. During
// each deployment two generations run, and each request reaches one of them at random.

var (
	older = idem.Secret{ID: "2026-10", Key: bytes.Repeat([]byte{1}, 32)}
	newer = idem.Secret{ID: "2026-11", Key: bytes.Repeat([]byte{2}, 32)}
)

const (
	tick       = 3 * time.Hour
	day        = int(24 * time.Hour / tick)
	deployment = 2 * day // ticks in which two generations run
)

// fleet holds a function's generations and clients.
type fleet struct {
	*testing.T
	mem    idem.MemoryStore
	begin  time.Time
	tick   int
	random *rand.Rand
	opt    func(*idem.Options)
	active []*idem.Engine
	queue  map[int][]func()

	sent, replays, resumed, mismatches int
	secret                             int // retries that were refused because of an unknown secret
}

func newFleet(t *testing.T, opt func(*idem.Options)) *fleet {
	t.Helper()
	return &fleet{
		T: t, begin: time.Now(), opt: opt, queue: make(map[int][]func()),
		random: rand.New(rand.NewPCG(7, 11)),
	}
}

func (f *fleet) now() time.Time { return f.begin.Add(time.Duration(f.tick) * tick) }

// generation returns a deployed version of the function.
func (f *fleet) generation(secrets ...idem.Secret) *idem.Engine {
	return idem.New(&f.mem, callertest.Anybody, f.opt, func(o *idem.Options) {
		o.Now, o.Logger, o.Fingerprint.Secrets = f.now, slog.New(slog.NewTextHandler(io.Discard, nil)), secrets
	})
}

// deploys replaces the last generation by the next, after a deployment in which both run.
func (f *fleet) deploys(next *idem.Engine, news int) {
	if len(f.active) > 0 {
		f.active = append(f.active[len(f.active)-1:], next)
		f.run(deployment, news)
	}
	f.active = []*idem.Engine{next}
}

// run runs ticks. In each tick, clients send new requests (their number
// is news) and the retries that are due.
func (f *fleet) run(ticks, news int) {
	for range ticks {
		for range news {
			f.client()
		}
		due := f.queue[f.tick]
		delete(f.queue, f.tick)
		for _, retry := range due {
			retry()
		}
		f.tick++
	}
}

func (f *fleet) later(ticks int, do func()) {
	at := f.tick + max(ticks, 1)
	f.queue[at] = append(f.queue[at], do)
}

// client sends a new request of a verified or unverified caller. The
// first attempt answers, fails, or dies after a phase; retries follow.
func (f *fleet) client() {
	f.sent++
	key := fmt.Sprint("key", f.sent)
	r := idem.Request{Key: key, Method: "POST", Path: "/charges", Body: []byte(`{"amount":1}`)}
	if f.random.IntN(2) == 0 {
		r.Scope = "jane"
	} else {
		r.Header = http.Header{"Authorization": {"Bearer " + key}}
	}
	answer := idem.Response{Status: 201, Body: []byte(key)}
	f.attempt(r, f.random.IntN(3), answer)
}

var errFailed = errors.New("failed")

// attempt ends an attempt by its fate: an answer, a failure that frees the
// key, or a failure after a phase. After a failure the client retries.
func (f *fleet) attempt(r idem.Request, fate int, answer idem.Response) {
	res, err := f.send(r, func(ctx context.Context) (idem.Response, error) {
		switch fate {
		case 1:
			return idem.Response{}, errFailed
		case 2:
			if _, err := idem.Atomic(ctx, "made", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
				return idem.Response{}, err
			}
			return idem.Response{}, errFailed
		}
		if op, _ := idem.FromContext(ctx); op.TakenOver() {
			f.resumed++
		}
		if _, err := idem.Atomic(ctx, "made", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		return answer, nil
	})
	switch {
	case errors.Is(err, idem.ErrIncomparable):
		f.secret++
		f.later(1, func() { f.attempt(r, fate, answer) })
	case fate != 0:
		if !errors.Is(err, errFailed) {
			f.Errorf("day %d: %v", f.tick/day, err)
		}
		f.later(f.random.IntN(10*day), func() { f.attempt(r, 0, answer) })
	case err != nil || !bytes.Equal(res.Body, answer.Body):
		f.Errorf("day %d: got %q, %v", f.tick/day, res.Body, err)
	default:
		left := int(res.Expires.Sub(f.now()) / tick)
		for range 3 {
			f.later(f.random.IntN(left), func() { f.retry(r, answer) })
		}
		f.later(left-1, func() { f.retry(r, answer) })
		f.later(f.random.IntN(left), func() { f.confused(r) })
	}
}

// send sends a request to one of the generations at random. The request has the real time.
func (f *fleet) send(r idem.Request, fn func(context.Context) (idem.Response, error)) (idem.Result, error) {
	return f.active[f.random.IntN(len(f.active))].Do(f.Context(), r, fn)
}

func (f *fleet) never(context.Context) (idem.Response, error) {
	f.Errorf("day %d: a retry ran", f.tick/day)
	return idem.Response{}, nil
}

// retry sends an honest retry of an answered request.
func (f *fleet) retry(r idem.Request, answer idem.Response) {
	res, err := f.send(r, f.never)
	switch {
	case errors.Is(err, idem.ErrIncomparable):
		f.secret++
	case err != nil || !res.Replayed || !bytes.Equal(res.Body, answer.Body):
		f.Errorf("day %d: an honest retry got %d %q, %v", f.tick/day, res.Status, res.Body, err)
	default:
		f.replays++
	}
}

// confused sends another request with the key, which the fingerprint must detect.
func (f *fleet) confused(r idem.Request) {
	r.Body = []byte(`{"amount":2}`)
	switch _, err := f.send(r, f.never); {
	case errors.Is(err, idem.ErrMismatch):
		f.mismatches++
	case errors.Is(err, idem.ErrIncomparable):
		f.secret++
	default:
		f.Errorf("day %d: another request got %v", f.tick/day, err)
	}
}

// needs returns what stats reports about a secret.
func (f *fleet) needs(id string) stats.Need {
	rep := stats.New("t", f.now(), time.Minute)
	for _, r := range f.mem.Records() {
		rep.Add(records.Item{Record: r})
	}
	rep.End(1, true)
	for _, s := range rep.Needs {
		if s.Secret == id {
			return *s
		}
	}
	return stats.Need{}
}

// waits runs until no record needs a secret, and compares the time with
// the end that stats reported.
func (f *fleet) waits(id string) {
	var said time.Time
	for days := 0; ; days++ {
		s := f.needs(id)
		if s.Open == 0 && s.Count > 0 && said.IsZero() {
			said = s.Until
		}
		if s.Count == 0 {
			break
		}
		if days > 400 {
			f.Fatalf("secret %q is still needed: %+v", id, s)
		}
		f.run(day, 1)
	}
	if said.IsZero() || f.now().Before(said) || f.now().After(said.AddDate(0, 0, 2)) {
		f.Errorf("the command said until %v, and it was until %v", said, f.now())
	}
}

func month(o *idem.Options) { o.Retention = 30 * 24 * time.Hour }

func TestRotation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt      func(*idem.Options)
		from     []idem.Secret // of the first generation
		between  []idem.Secret // knows the newer secret, and uses the older
		to, last []idem.Secret // to uses the newer secret; last knows only the newer
		id       string        // id of the old secret
	}{
		"a month": {month, []idem.Secret{older}, []idem.Secret{older, newer}, []idem.Secret{newer, older}, []idem.Secret{newer}, older.ID},
		"a day, stored requests": {func(o *idem.Options) {
			o.Function, o.Retention, o.Resumable, o.CallerFromOp = "f", 24*time.Hour, true, true
		}, []idem.Secret{older}, []idem.Secret{older, newer}, []idem.Secret{newer, older}, []idem.Secret{newer}, older.ID},
		"the first secret": {month, nil, []idem.Secret{{}, newer}, []idem.Secret{newer}, []idem.Secret{newer}, ""},
		"the last secret":  {month, []idem.Secret{older}, []idem.Secret{{}, older}, []idem.Secret{{}, older}, nil, older.ID},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, tc.opt)
			f.deploys(f.generation(tc.from...), 2)
			f.run(5*day, 2)
			f.deploys(f.generation(tc.between...), 2)
			f.run(3*day, 2)
			f.deploys(f.generation(tc.to...), 2)
			f.waits(tc.id)
			f.deploys(f.generation(tc.last...), 1)
			f.run(100*day, 0) // until the last retry
			t.Logf("%d requests; %d replays, %d take-overs, %d mismatches, in %d days", f.sent, f.replays, f.resumed, f.mismatches, f.tick/day)
			if f.secret > 0 {
				t.Errorf("%d requests met a record of an unknown secret", f.secret)
			}
			if f.replays < 4*f.sent*9/10 || f.resumed < f.sent/5 || f.mismatches < f.sent*9/10 || len(f.queue) > 0 {
				t.Errorf("too little happened: %d of %d replayed, %d resumed, %d mismatches, %d outstanding", f.replays, f.sent, f.resumed, f.mismatches, len(f.queue))
			}
		})
	}
}

// In the wrong order, requests are refused for a while, but no retry is
// a mismatch or runs again. Two orders are wrong: an old function meets
// a record of the new secret, or a secret is removed too early.
func TestRotationInTheWrongOrder(t *testing.T) {
	t.Parallel()
	for name, generations := range map[string][][]idem.Secret{
		"used before all know it": {{older}, {newer, older}, {newer, older}},
		"removed too early":       {{older}, {older, newer}, {newer, older}, {newer}, {newer, older}},
		"the first one at once":   {nil, {newer}, {newer}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, month)
			for _, secrets := range generations {
				f.deploys(f.generation(secrets...), 2)
				f.run(3*day, 2)
			}
			f.run(100*day, 0)
			if f.secret == 0 {
				t.Error("nobody met a record of an unknown secret: this test can't tell the orders apart")
			}
			if f.replays == 0 || f.mismatches == 0 {
				t.Error("nothing was replayed or refused")
			}
		})
	}
}
