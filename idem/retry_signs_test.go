package idem_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/retrysign"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// met is a request that meets a record, on a store that counts.
type met struct {
	mem   idem.MemoryStore
	store *idemtest.FaultyStore
	clock *idemtest.Clock
	made  func(*idem.Options) // by which its record is made
	opt   func(*idem.Options) // by which it is sent
	told  []string            // by the hooks
	runs  int
}

func (m *met) engine(s store.Store, opts ...func(*idem.Options)) *idem.Engine {
	return idem.New(s, append(opts, func(o *idem.Options) { o.Function, o.Now = "f", m.clock.Now })...)
}

func (m *met) tells(o *idem.Options) {
	tell := func(_ context.Context, ev idem.Event) {
		m.told = append(m.told, fmt.Sprintf("%s %v", ev.Name, ev.Err != nil))
	}
	h := &o.Hooks
	h.Claimed, h.TakenOver, h.Committed, h.Finished, h.Released, h.Replayed, h.InFlight, h.Mismatch = tell, tell, tell, tell, tell, tell, tell, tell
	h.Limited, h.Stuck, h.Refused, h.Failed, h.Unprotected, h.Observed = tell, tell, tell, tell, tell, tell
}

func ordered(body string) idem.Request {
	return idem.Request{
		Key: "a-random-key-of-an-order", Method: "POST", Path: "/orders", Route: "POST /orders", Body: []byte(body),
		Identity: idem.Identity{Kind: "jwt", Subject: "jane"},
	}
}

func retried(r idem.Request) idem.Request {
	r.Header = http.Header{retrysign.Client: {"1"}}
	return r
}

// run is the handler: one phase, then an answer, or an error before or after the phase.
func (m *met) run(before, after error) handler {
	return func(ctx context.Context) (idem.Response, error) {
		m.runs++
		if before != nil {
			return idem.Response{}, before
		}
		if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		return idem.Response{Status: 201, Body: []byte("made")}, after
	}
}

// meetings are the records that a request may meet, by how they come about.
var meetings = map[string]func(*testing.T, *met){
	"nothing": func(*testing.T, *met) {},
	"done":    done,
	"of another request": func(t *testing.T, m *met) {
		t.Helper()
		send(t, m, ordered("another"), nil, nil)
	},
	"expired": func(t *testing.T, m *met) {
		t.Helper()
		done(t, m)
		m.clock.Advance(defaults.Retention + time.Minute)
	},
	"done again": func(t *testing.T, m *met) { // while the scope changes, beside the expired record
		t.Helper()
		_, _ = m.engine(&m.mem, m.opt, func(o *idem.Options) { o.Key, o.Quota = idem.KeyRequired, nil }).Do(t.Context(), ordered("{}"), m.run(nil, nil))
		m.clock.Advance(defaults.Retention + time.Minute)
		done(t, m)
	},
	"freed": func(t *testing.T, m *met) {
		t.Helper()
		send(t, m, ordered("{}"), errors.New("down"), nil)
	},
	"released": func(t *testing.T, m *met) {
		t.Helper()
		send(t, m, ordered("{}"), nil, errors.New("down"))
	},
	"withheld": func(t *testing.T, m *met) {
		t.Helper()
		_, _ = m.engine(&m.mem, m.made).Do(t.Context(), ordered("{}"), func(ctx context.Context) (idem.Response, error) {
			res, err := m.run(nil, nil)(ctx)
			res.Status = 409
			return res, err
		})
	},
	"in flight": crashes,
	"abandoned": func(t *testing.T, m *met) {
		t.Helper()
		crashes(t, m)
		m.clock.Advance(storetest.LeaseOver)
	},
	"stuck": func(t *testing.T, m *met) {
		t.Helper()
		crashes(t, m)
		m.clock.Advance(storetest.LeaseOver)
		for _, rec := range m.mem.Records() {
			if err := m.engine(&m.mem, m.made).MarkStuck(t.Context(), state.TicketFor(rec), "nobody came"); err != nil {
				t.Fatal(err)
			}
		}
	},
	"incomparable": func(t *testing.T, m *met) {
		t.Helper()
		_, _ = m.engine(&m.mem, m.made, func(o *idem.Options) { o.Fingerprint.CanonicalJSON = true }).Do(t.Context(), ordered("{}"), m.run(nil, nil))
	},
}

func send(t *testing.T, m *met, r idem.Request, before, after error) {
	t.Helper()
	_, _ = m.engine(&m.mem, m.made).Do(t.Context(), r, m.run(before, after))
}

func done(t *testing.T, m *met) {
	t.Helper()
	send(t, m, ordered("{}"), nil, nil)
}

// crashes leaves the record of an attempt that died after its first commit.
func crashes(t *testing.T, m *met) {
	t.Helper()
	process := idemtest.Faulty(&m.mem, nil)
	_, _ = m.engine(process, m.made).Do(t.Context(), ordered("{}"), func(ctx context.Context) (idem.Response, error) {
		res, err := m.run(nil, nil)(ctx)
		process.Crash()
		return res, err
	})
}

// what became of a request.
type became struct {
	Status   int
	Body     string
	Replayed bool
	Err      string
	Runs     int
	Told     []string
	Record   string
}

func (m *met) sends(t *testing.T, r idem.Request) became {
	t.Helper()
	m.runs = 0
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	res, err := m.engine(m.store, m.opt, m.tells).Do(ctx, r, m.run(nil, nil))
	b := became{Status: res.Status, Body: string(res.Body), Replayed: res.Replayed, Runs: m.runs, Told: m.told}
	if e, ok := errors.AsType[*idem.Error](err); ok {
		b.Err = fmt.Sprintf("%s: %v, again after %s", e.Op, e.Err, e.RetryAfter)
	} else if err != nil {
		b.Err = err.Error()
	}
	recs := m.mem.Records()
	for _, pk := range slices.Sorted(maps.Keys(recs)) {
		rec := recs[pk]
		b.Record += fmt.Sprintf("%s %d %v %s; ", rec.State, rec.Ver, rec.Phases, rec.Expires)
	}
	return b
}

// settings are engines for which a request may be a retry, and those that made its record
// if they are others.
var settings = map[string]struct{ opt, made func(*idem.Options) }{
	"plain":               {opt: callertest.Anybody},
	"resumable":           {opt: func(o *idem.Options) { callertest.Anybody(o); o.Resumable = true }},
	"open":                {opt: func(o *idem.Options) { callertest.Anybody(o); o.Mode = idem.ModeOpen }},
	"waiting":             {opt: func(o *idem.Options) { callertest.Anybody(o); o.InFlight = idem.InFlightWait }},
	"within the quota":    {opt: func(o *idem.Options) { callertest.Anybody(o); (&gate{}).set(o) }},
	"over the quota":      {opt: func(o *idem.Options) { callertest.Anybody(o); (&gate{wait: time.Minute}).set(o) }, made: callertest.Anybody},
	"observing":           {opt: func(o *idem.Options) { callertest.Anybody(o); o.Mode = idem.ModeObserve }, made: callertest.Anybody},
	"one of two scopes":   {opt: scopeChanges(true)},
	"the other scope":     {opt: scopeChanges(true), made: scopeChanges(false)},
	"the other, and over": {opt: func(o *idem.Options) { scopeChanges(true)(o); (&gate{wait: time.Minute}).set(o) }, made: scopeChanges(false)},
}

func scopeChanges(claims bool) func(*idem.Options) {
	return func(o *idem.Options) { o.Former = &idem.Former{OneScope: true, Claims: claims} }
}

func meets(t *testing.T, setting, meeting string) *met {
	t.Helper()
	s := settings[setting]
	m := &met{clock: idemtest.NewClock(), opt: s.opt, made: s.made}
	if m.made == nil {
		m.made = m.opt
	}
	meetings[meeting](t, m)
	m.store = idemtest.Faulty(&m.mem, nil)
	return m
}

// Whether a request says that it is a retry decides about the price, and about nothing
// else: whatever it meets, it has the same answer, the same events and the same record as
// one that doesn't say so. So has one whose sign is wrong, and one whose read fails.
func TestARetryPaysLessAndNothingElse(t *testing.T) {
	t.Parallel()
	down := idemtest.Fault{Err: errors.New("throttled")}
	for setting := range settings {
		for meeting := range meetings {
			for trouble, plans := range map[string][2]idemtest.Plan{
				"no trouble": {},
				"no read":    {nil, idemtest.At("Load", 1, down)},
				"no claim":   {idemtest.At("Claim", 0, down), idemtest.At("Claim", 0, down)},
			} {
				t.Run(setting+", meets "+meeting+", "+trouble, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						var came [2]became
						for i, r := range []idem.Request{ordered("{}"), retried(ordered("{}"))} {
							m := meets(t, setting, meeting)
							m.store.Reset(plans[i])
							came[i] = m.sends(t, r)
						}
						if diff := cmp.Diff(came[0], came[1]); diff != "" {
							t.Errorf("(-without a sign +with it):\n%s", diff)
						}
					})
				})
			}
		}
	}
}

// The calls of a request that says that it is a retry: a read, and no claim that is
// refused.
func TestCallsOfARetry(t *testing.T) {
	t.Parallel()
	for meeting, want := range map[string][3]int{ // reads, claims, commits
		"nothing": {1, 1, 2}, "expired": {1, 1, 2}, "freed": {1, 1, 2},
		"abandoned": {1, 0, 2}, "released": {1, 0, 2},
		"done": {1, 0, 0}, "done again": {1, 0, 0}, "of another request": {1, 0, 0}, "in flight": {1, 0, 0}, "stuck": {1, 0, 0}, "withheld": {1, 0, 0},
		"incomparable": {1, 0, 0},
	} {
		for _, setting := range []string{"plain", "over the quota", "one of two scopes", "the other scope"} {
			t.Run(setting+", meets "+meeting, func(t *testing.T) {
				t.Parallel()
				want := want
				free := meeting == "nothing" || meeting == "expired" || meeting == "freed"
				switch {
				case setting == "over the quota" && free:
					want = [3]int{1, 0, 0} // refused, without another read
				case setting == "one of two scopes" && meeting == "nothing":
					want[0]++ // each place has none
				case setting == "one of two scopes" && meeting == "of another request":
					want[0]++ // there may be another one there
				case setting == "the other scope" && meeting == "done again":
					want[1]++ // the claim is refused by the other place
				case setting == "the other scope" && !free:
					want[0]++ // it is there
				case setting == "the other scope":
					return // it is fenced there: TestFormer has the calls
				}
				m := meets(t, setting, meeting)
				m.sends(t, retried(ordered("{}")))
				if got := [3]int{m.store.Calls("Load"), m.store.Calls("Claim"), m.store.Calls("Commit")}; got != want {
					t.Errorf("%v reads, claims and commits, want %v", got, want)
				}
			})
		}
	}
}

// What another attempt does between the look and the claim counts.
func TestLookIsOvertaken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meeting string
		other   func(*testing.T, *met)
		want    string
	}{
		"nothing, then done":             {"nothing", done, "201 true"},
		"freed, then done":               {"freed", done, "201 true"},
		"freed, then freed again":        {"freed", meetings["freed"], "201 false"},
		"freed, then in flight":          {"freed", crashes, "in flight"},
		"freed, then of another request": {"freed", meetings["of another request"], "mismatch"},
		"abandoned, then taken over":     {"abandoned", crashes, "in flight"},
		"abandoned, then done":           {"abandoned", done, "201 true"},
		"released, then done":            {"released", done, "201 true"},
		"released, then released again":  {"released", meetings["released"], "201 false"},
		"expired, then of another":       {"expired", meetings["of another request"], "mismatch"},
		"in flight, then done":           {"in flight", nil, "in flight"},
	} {
		for _, setting := range []string{"plain", "open"} {
			t.Run(setting+": "+name, func(t *testing.T) {
				t.Parallel()
				m := meets(t, setting, tt.meeting)
				first := true
				between := &spoilt{Store: &m.mem, load: func(ctx context.Context, pk string) (*store.Record, error) {
					rec, err := m.mem.Load(ctx, pk)
					if first && tt.other != nil {
						first = false
						tt.other(t, m)
					}
					return rec, err
				}}
				m.store = idemtest.Faulty(between, nil)
				b := m.sends(t, retried(ordered("{}")))
				got := fmt.Sprintf("%d %t", b.Status, b.Replayed)
				switch {
				case strings.Contains(b.Err, "in flight"):
					got = "in flight"
				case strings.Contains(b.Err, "another request"):
					got = "mismatch"
				case b.Err != "":
					got = b.Err
				}
				if got != tt.want || len(m.mem.Records()) != 1 {
					t.Errorf("got %s, want %s; %s", got, tt.want, b.Record)
				}
			})
		}
	}
}

// While the scope changes, the quota is asked about the request's own caller, wherever the
// look has found an expired record.
func TestQuotaOfARetryIsItsCallers(t *testing.T) {
	t.Parallel()
	var asked [2][]idem.QuotaRequest
	for i, r := range []idem.Request{ordered("{}"), retried(ordered("{}"))} {
		g := new(gate)
		m := meets(t, "the other scope", "expired")
		_, err := m.engine(m.store, scopeChanges(true), g.set).Do(t.Context(), r, m.run(nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		asked[i] = g.asked
	}
	if diff := cmp.Diff(asked[0], asked[1]); diff != "" || len(asked[0]) != 1 {
		t.Errorf("(-without a sign +with it):\n%s", diff)
	}
}

// A sign that is none: the request is claimed at once.
func TestNoSignIsNoRead(t *testing.T) {
	t.Parallel()
	for _, h := range []http.Header{
		nil,
		{"Retry-After": {"2"}},
		{retrysign.Client: {"0"}},
		{retrysign.Client: {"-1"}},
		{retrysign.Client: {"1", "2"}},
		{retrysign.Client: {"1, 2"}},
		{retrysign.Client: {"one"}},
		{retrysign.Client: {""}},
		{retrysign.Client: nil},
		{retrysign.Client: {strings.Repeat("9", 10_000)}},
		{"Amz-Sdk-Request": {"attempt=1; max=3"}},
		{"Amz-Sdk-Request": {"attempt=2; attempt=2"}},
		{"X-Stainless-Retry-Count": {"0"}},
	} {
		m := meets(t, "plain", "done")
		r := ordered("{}")
		r.Header = h
		m.opt = callertest.Anybody
		if b := m.sends(t, r); !b.Replayed || m.store.Calls("Load") != 0 || m.store.Calls("Claim") != 1 {
			t.Errorf("%v: %+v after %d reads", h, b, m.store.Calls("Load"))
		}
	}
}

// Each way to say so is enough, and none changes the fingerprint.
func TestSignsOfARetry(t *testing.T) {
	t.Parallel()
	source := ordered("{}")
	source.ReadFirst = true
	for name, r := range map[string]idem.Request{"a source": source, "a client": retried(ordered("{}"))} {
		m := meets(t, "plain", "done")
		if b := m.sends(t, r); !b.Replayed || m.store.Calls() != 1 || m.store.Calls("Load") != 1 {
			t.Errorf("%s: %+v after %d calls", name, b, m.store.Calls())
		}
	}
}

// A read that hangs leaves time for the claim, and changes nothing of its outcome.
func TestLookThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &spoilt{Store: new(idem.MemoryStore), load: func(ctx context.Context, _ string) (*store.Record, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
		defer cancel()
		res, err := idem.New(s, callertest.Anybody).Do(ctx, retried(ordered("{}")), func(context.Context) (idem.Response, error) {
			return idem.Response{Status: http.StatusCreated}, nil
		})
		if err != nil || res.Status != http.StatusCreated || res.Replayed {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

// One key of two: a retry whose own place has another request is looked for at the other.
func TestLookAtTwoOperationsOfAKey(t *testing.T) {
	t.Parallel()
	for sign, r := range map[string]idem.Request{"without a sign": ordered("{}"), "with it": retried(ordered("{}"))} {
		m := &met{clock: idemtest.NewClock(), opt: scopeChanges(false), made: scopeChanges(true)}
		done(t, m)
		m.made = func(*idem.Options) {}
		send(t, m, ordered("another"), nil, nil)
		m.store = idemtest.Faulty(&m.mem, nil)
		if b := m.sends(t, r); !b.Replayed || len(m.mem.Records()) != 2 || sign == "with it" && (m.store.Calls("Load") != 2 || m.store.Calls() != 2) {
			t.Errorf("%s: %+v after %d calls", sign, b, m.store.Calls())
		}
	}
}
