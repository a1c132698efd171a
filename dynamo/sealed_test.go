package dynamo_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/enginetest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/leaktest"
	"github.com/samekey/samekey/internal/testkit/tabletest"
	"github.com/samekey/samekey/seal"
)

// The whole suite, with the engine's rules.
func TestEngineSealed(t *testing.T) {
	t.Parallel()
	tab := newTable(t, sealing(newProvider(t, "one")))
	enginetest.TestStore(t, func(testing.TB) store.Store { return tab.Store })
}

// Calls and write units don't change, and a data key serves all of them.
func TestCallsPerRequestSealed(t *testing.T) {
	t.Parallel()
	p := newProvider(t, "one")
	callsPerRequest(t, newTable(t, sealing(p)))
	if p.generated != 1 || p.opened != 0 {
		t.Errorf("%d data keys made and %d opened, want 1 and 0", p.generated, p.opened)
	}
}

// provider is a seal.Provider that counts its calls, and fails as told.
type provider struct {
	seal.Provider

	mu                sync.Mutex
	generated, opened int
	fails             error
	hangs             bool
}

func (p *provider) Generate(ctx context.Context) (seal.DataKey, error) {
	if err := p.call(ctx, &p.generated); err != nil {
		return seal.DataKey{}, err
	}
	return p.Provider.Generate(ctx)
}

func (p *provider) Open(ctx context.Context, id string, wrapped []byte) ([]byte, error) {
	if err := p.call(ctx, &p.opened); err != nil {
		return nil, err
	}
	return p.Provider.Open(ctx, id, wrapped)
}

func (p *provider) call(ctx context.Context, count *int) error {
	p.mu.Lock()
	*count++
	err, hangs := p.fails, p.hangs
	p.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (p *provider) set(err error, hangs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails, p.hangs = err, hangs
}

func newProvider(t testing.TB, current string, older ...string) *provider {
	t.Helper()
	keys := make(map[string][]byte)
	for _, name := range append(older, current) {
		keys[name] = append([]byte(name), make([]byte, 32-len(name))...)
	}
	p, err := seal.NewStatic(current, keys)
	if err != nil {
		t.Fatal(err)
	}
	return &provider{Provider: p}
}

// sealing is the option of a process with a sealer of its own.
func sealing(p seal.Provider, optFns ...func(*seal.Options)) func(*dynamo.Options) {
	sealer := seal.New(p, optFns...)
	return func(o *dynamo.Options) { o.Seal = sealer }
}

// outages are the ways in which a provider fails: by an error, and by no answer.
var outages = map[string]func(p *provider){
	"denied": func(p *provider) { p.set(errors.New("access denied"), false) },
	"slow":   func(p *provider) { p.set(nil, true) },
}

// Without a data key nothing is claimed and nothing runs, and the key is
// as new afterwards.
func TestNoDataKey(t *testing.T) {
	t.Parallel()
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, tab *table) {
				p, key := newProvider(t, "one"), tabletest.NewKey()
				s := tab.process(t, sealing(p))
				outage(p)
				isProblem(t, serve(t.Context(), s, key, tabletest.NeverRuns(t)), 503, "store_unavailable")
				if items, calls := tab.Items(t), tab.Transport.Calls(); len(items) != 0 || calls["PutItem"] != 0 {
					t.Errorf("%d items after %v", len(items), calls)
				}
				p.set(nil, false)
				if re := serve(t.Context(), s, key, tabletest.Created("{}")); re.Status != 201 {
					t.Errorf("the provider is back, and the answer is %d %s", re.Status, re.Body)
				}
			})
		})
	}
}

// A replay and a take-over that can't be opened change nothing, and are
// answered once the provider is back.
func TestDataKeyCannotBeOpened(t *testing.T) {
	t.Parallel()
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, tab *table) {
				p, done, open := newProvider(t, "one"), tabletest.NewKey(), tabletest.NewKey()
				tab.Store = tab.process(t, sealing(newProvider(t, "one")))
				serve(t.Context(), tab.Store, done, tabletest.Created("{}"))
				serve(t.Context(), tab.Store, open, down, resumable)
				before := tab.Items(t)

				other := tab.process(t, sealing(p))
				outage(p)
				for _, key := range []string{done, open} {
					isProblem(t, serve(t.Context(), other, key, tabletest.NeverRuns(t), resumable), 503, "store_unavailable")
				}
				tab.unchanged(t, before)
				p.set(nil, false)
				if re := serve(t.Context(), other, done, tabletest.NeverRuns(t)); re.Status != 201 || re.Header.Get("Idempotent-Replayed") == "" {
					t.Errorf("the provider is back, and the replay is %d %v", re.Status, re.Header)
				}
				if re := serve(t.Context(), other, open, up("{}"), resumable); re.Status != 201 {
					t.Errorf("the provider is back, and the retry's answer is %d %s", re.Status, re.Body)
				}
			})
		})
	}
}

// ModeOpen is for a store that can't be reached. Behind a data key that
// can't be had there may be a record, so nothing runs, be the key done, open or new.
func TestModeOpenRunsNothingBehindAKey(t *testing.T) {
	t.Parallel()
	for name, readFirst := range map[string]bool{"claimed": false, "read first": true} {
		for _, desk := range []string{"without a sealer", "denied"} {
			t.Run(name+", "+desk, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t, sealing(newProvider(t, "one")))
				keys := []string{tabletest.NewKey(), tabletest.NewKey()}
				serve(t.Context(), tab.Store, keys[0], tabletest.Created("{}"))
				serve(t.Context(), tab.Store, keys[1], down)
				if desk == "denied" {
					keys = append(keys, tabletest.NewKey()) // without a sealer it would be claimed
				}
				before, other := tab.Items(t), desks(t, tab)[desk]
				for _, key := range keys {
					re := ask(t.Context(), other, key, readFirst, tabletest.NeverRuns(t), func(o *idem.Options) { o.Mode = idem.ModeOpen })
					isProblem(t, re, 503, "store_unavailable")
				}
				tab.unchanged(t, before)
			})
		}
	}
}

// A record that a read has found stays found, though its contents are closed: ModeOpen
// runs nothing if the claim then fails for another reason.
//
//nolint:tparallel // the table is compared when all have run
func TestModeOpenRemembersAClosedRecord(t *testing.T) {
	t.Parallel()
	tab := newTable(t, sealing(newProvider(t, "one")))
	key := tabletest.NewKey()
	serve(t.Context(), tab.Store, key, tabletest.Created("{}"))
	before := tab.Items(t)
	all := desks(t, tab)
	other, err := seal.NewStatic("one", map[string][]byte{"one": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	all["another key"] = tab.process(t, sealing(other)) // finds the record corrupt
	for name, desk := range all {
		t.Run(name, func(t *testing.T) {
			re := ask(t.Context(), &readsOnce{Store: desk}, key, true, tabletest.NeverRuns(t), func(o *idem.Options) { o.Mode = idem.ModeOpen })
			isProblem(t, re, 503, "store_unavailable")
		})
	}
	tab.unchanged(t, before)
}

// readsOnce is a store that can be reached by its first read only.
type readsOnce struct {
	*dynamo.Store
	read bool
}

func (*readsOnce) Claim(context.Context, store.Claim) (*store.Record, error) {
	return nil, errors.New("no such host")
}

func (s *readsOnce) Load(ctx context.Context, pk string) (*store.Record, error) {
	if !s.read {
		s.read = true
		return s.Store.Load(ctx, pk)
	}
	return nil, errors.New("no such host")
}

// An expired record is in nobody's way, so it is not in flight if its key can't be
// claimed again.
func TestNoDataKeyOverAnExpiredRecord(t *testing.T) {
	t.Parallel()
	tab := newTable(t, sealing(newProvider(t, "one")))
	key := tabletest.NewKey()
	serve(t.Context(), tab.Store, key, tabletest.Created("{}"))
	before, reader := tab.Items(t), tab.process(t, sealing(opensOnly{newProvider(t, "one")}))
	isProblem(t, serve(t.Context(), reader, key, tabletest.NeverRuns(t), tabletest.Ahead(48*time.Hour)), 503, "store_unavailable")
	tab.unchanged(t, before)
}

// opensOnly is a provider that makes no data keys.
type opensOnly struct{ seal.Provider }

func (opensOnly) Generate(context.Context) (seal.DataKey, error) {
	return seal.DataKey{}, errors.New("access denied")
}

// A program without a sealer can't read sealed records, and leaves them alone.
func TestSealedRecordWithoutASealer(t *testing.T) {
	t.Parallel()
	tab := newTable(t, sealing(newProvider(t, "one")))
	key := tabletest.NewKey()
	serve(t.Context(), tab.Store, key, tabletest.Created("{}"))
	before := tab.Items(t)
	plain := tab.process(t)
	isProblem(t, serve(t.Context(), plain, key, tabletest.NeverRuns(t)), 503, "store_unavailable")
	tab.unchanged(t, before)
	// Its owner, version and times can be read without a key.
	r, err := plain.Load(t.Context(), before[0]["pk"].(*types.AttributeValueMemberS).Value)
	if !errors.Is(err, store.ErrSealed) || r == nil || r.State != store.Done || r.Seal.KeyID() != "one" || len(r.Response.Body) != 0 {
		t.Errorf("Load returned %+v, %v", r, err)
	}
}

// A ticket takes a record over before its request can be read. If the request can't be
// opened, the record is given back, and no try is counted.
func TestTicketWhoseRequestIsSealed(t *testing.T) {
	t.Parallel()
	tab := newTable(t, sealing(newProvider(t, "one")))
	serve(t.Context(), tab.Store, tabletest.NewKey(), down, resumable)

	p := newProvider(t, "one")
	engine := idem.New(tab.process(t, sealing(p)), callertest.Anybody, tabletest.Unhurried, idem.OneScope, resumable)
	resume := func(fn func(context.Context) (idem.Response, error)) error {
		r := tab.Only(t)
		_, err := engine.Resume(t.Context(), state.TicketFor(r), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return fn(ctx) })
		return err
	}
	p.set(errors.New("access denied"), false)
	before := tab.Only(t)
	for range 3 {
		if err := resume(tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrUnavailable) || !errors.Is(err, store.ErrSealed) {
			t.Errorf("Resume returned %v", err)
		}
	}
	after := tab.Only(t)
	if after.State != store.Open || !after.Lease.IsZero() || after.Tries != before.Tries || after.Ver == before.Ver {
		t.Errorf("the record is %+v, was %+v", after, before)
	}
	p.set(nil, false)
	if err := resume(up("{}")); err != nil {
		t.Errorf("the provider is back, and Resume returned %v", err)
	}
	if r := tab.Only(t); r.State != store.Done || r.Tries != before.Tries+1 {
		t.Errorf("the record is %+v", r)
	}
}

// A ticket for an operation from before encryption is not taken without a data key: the
// handler must not run if its results can't be stored. With one, the rest of the
// operation needs no provider.
func TestTicketForAPlainRecordNeedsADataKey(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	serve(t.Context(), tab.Store, tabletest.NewKey(), down, resumable)

	p := newProvider(t, "one")
	engine := idem.New(tab.process(t, sealing(p, func(o *seal.Options) { o.MaxAge = 1 })), callertest.Anybody, tabletest.Unhurried, idem.OneScope, resumable)
	resume := func(fn func(context.Context) (idem.Response, error)) error {
		_, err := engine.Resume(t.Context(), state.TicketFor(tab.Only(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return fn(ctx) })
		return err
	}
	p.set(errors.New("access denied"), false)
	before := tab.Items(t)
	if err := resume(tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrUnavailable) || !errors.Is(err, store.ErrSealed) {
		t.Errorf("Resume returned %v", err)
	}
	tab.unchanged(t, before)
	p.set(nil, false)
	if err := resume(func(ctx context.Context) (idem.Response, error) {
		p.set(errors.New("gone"), false)
		return up("{}")(ctx)
	}); err != nil {
		t.Errorf("the provider went after the take-over, and Resume returned %v", err)
	}
	p.set(nil, false)
	tab.Store = tab.process(t, sealing(p))
	if r := tab.Only(t); r.State != store.Done || r.Seal == nil || r.Response == nil {
		t.Errorf("the record is %+v", r)
	}
}

// From its claim to its answer an operation needs no provider, though its data key is
// long out of the sealer's memory.
func TestNoProviderBetweenClaimAndAnswer(t *testing.T) {
	t.Parallel()
	p := newProvider(t, "one")
	tab := newTable(t, sealing(p, func(o *seal.Options) { o.MaxAge = 1 }))
	large := strings.Repeat("unlikely to compress: "+tabletest.NewKey(), 1000)
	re := serve(t.Context(), tab.Store, tabletest.NewKey(), func(ctx context.Context) (idem.Response, error) {
		p.set(errors.New("gone"), false)
		for _, phase := range []string{"one", "two"} {
			if _, err := idem.Atomic(ctx, phase, func(_ context.Context, tx *idem.Tx) (string, error) {
				tx.Stage(idem.NewJob("mail", phase))
				return "result", nil
			}); err != nil {
				return idem.Response{}, err
			}
		}
		return idem.Response{Status: 201, Body: []byte(large)}, nil
	})
	if re.Status != 201 || p.generated != 1 || p.opened != 0 {
		t.Errorf("the answer is %d %s, after %d and %d calls", re.Status, re.Body, p.generated, p.opened)
	}
	p.set(nil, false)
	if r := tab.Only(t); r.State != store.Done || len(r.Jobs) != 2 || string(r.Jobs["1.0"].Args) != `"two"` {
		t.Errorf("the record is %+v", r)
	}
}

// Records from before and after each change of a setting are read, and go on.
func TestSwitchingOnAndOffAndRotation(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	openOnly := func(o *seal.Options) { o.OpenOnly = true }
	settings := []func(*dynamo.Options){
		func(*dynamo.Options) {},
		sealing(newProvider(t, "one", "two"), openOnly),
		sealing(newProvider(t, "one", "two")), // all programs know the new key before one uses it
		sealing(newProvider(t, "two", "one")),
		sealing(newProvider(t, "two", "one"), openOnly),
	}
	phase := func(ctx context.Context, name string) (string, error) {
		return idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Stage(idem.NewJob("mail", name))
			return name + " done", nil
		})
	}
	large := strings.Repeat("x", 10) + tabletest.NewKey()
	for i, first := range settings {
		for j, second := range settings {
			if j == 0 && i > 1 {
				continue // a program that never had a sealer can't go back
			}
			t.Run(string(rune('0'+i))+" then "+string(rune('0'+j)), func(t *testing.T) {
				t.Parallel()
				key := tabletest.NewKey()
				handler := func(fails bool) func(context.Context) (idem.Response, error) {
					return func(ctx context.Context) (idem.Response, error) {
						one, err := phase(ctx, "one")
						if fails || err != nil {
							return idem.Response{}, errors.Join(err, errors.New("down"))
						}
						two, err := phase(ctx, "two")
						return idem.Response{Status: 201, Body: []byte(one + ", " + two + large)}, err
					}
				}
				serve(t.Context(), tab.process(t, first), key, handler(true), resumable)
				s := tab.process(t, second)
				if re := serve(t.Context(), s, key, handler(false), resumable); re.Status != 201 {
					t.Fatalf("the retry's answer is %d %s", re.Status, re.Body)
				}
				for _, s := range []store.Store{s, tab.process(t, settings[3]), tab.process(t, settings[4])} {
					re := serve(t.Context(), s, key, tabletest.NeverRuns(t), resumable)
					if re.Status != 201 || string(re.Body) != "one done, two done"+large {
						t.Errorf("the replay is %d %s", re.Status, re.Body)
					}
				}
			})
		}
	}
}

// An answer that was not kept is bound to its caller too: who erases the caller leaves a
// record that its retries can read.
func TestErasedCallerOfAnAnswerThatWasNotKept(t *testing.T) {
	t.Parallel()
	tab := newTable(t, sealing(newProvider(t, "one")))
	engine := idem.New(tab.Store, callertest.Anybody, func(o *idem.Options) {
		o.MaxBody, o.Scope = 4, func(context.Context, *idem.Request) (string, error) { return "jwt:jane", nil }
	})
	req := tabletest.Post(tabletest.NewKey(), "{}")
	if _, err := engine.Do(t.Context(), req, tabletest.Created("more than four")); err != nil {
		t.Fatal(err)
	}
	if err := engine.Erase(t.Context(), state.TicketFor(tab.Only(t)), "joe"); err != nil {
		t.Fatal(err)
	}
	if res, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("the retry hears %+v, %v, want that the answer is not kept", res.Response, err)
	}
}

// stuckSealed is a sealed record with a result and a call whose outcome is unknown, which
// waits for people.
func stuckSealed(t *testing.T, tab *table) *store.Record {
	t.Helper()
	serve(t.Context(), tab.Store, tabletest.NewKey(), func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "reserve", func(context.Context, *idem.Tx) (string, error) { return "kept", nil }); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (string, error) { return "", errors.New("no answer") }, idem.NotIdempotent())
		return idem.Response{}, err
	})
	r := tab.Only(t)
	if r.State != store.Stuck || len(r.Phases) != 2 || string(r.Phases[0].Result) != `"kept"` {
		t.Fatalf("the record is %+v", r)
	}
	return r
}

// desks are the programs of operators who may not open data keys.
func desks(t *testing.T, tab *table) map[string]*dynamo.Store {
	t.Helper()
	denied := newProvider(t, "one")
	denied.set(errors.New("access denied"), false)
	return map[string]*dynamo.Store{"without a sealer": tab.process(t), "denied": tab.process(t, sealing(denied))}
}

// What people decide without contents needs no key, and leaves the contents as they are.
func TestOperatorsWithoutTheKey(t *testing.T) {
	t.Parallel()
	for _, desk := range []string{"without a sealer", "denied"} {
		for name, decide := range map[string]func(e *idem.Engine, r *store.Record) error{
			"retry": func(e *idem.Engine, r *store.Record) error {
				return e.Settle(t.Context(), r.PK, idem.Settlement{Seen: state.TicketFor(r), By: "jane"})
			},
			"forget": func(e *idem.Engine, r *store.Record) error {
				_, err := e.Forget(t.Context(), state.TicketFor(r), "jane", idem.Loss{Work: true})
				return err
			},
		} {
			t.Run(name+", "+desk, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t, sealing(newProvider(t, "one")))
				serve(t.Context(), tab.Store, tabletest.NewKey(), func(ctx context.Context) (idem.Response, error) {
					_, err := idem.Atomic(ctx, "reserve", func(context.Context, *idem.Tx) (string, error) { return "kept", nil })
					return idem.Response{}, errors.Join(err, errors.New("down"))
				})
				if err := tab.Engine().MarkStuck(t.Context(), state.TicketFor(tab.Only(t)), "nobody completes it"); err != nil {
					t.Fatal(err)
				}
				r := tab.Only(t)
				if err := decide(idem.New(desks(t, tab)[desk], callertest.Anybody), r); err != nil {
					t.Fatal(err)
				}
				after := tab.Only(t)
				if r.State != store.Stuck || after.Ver == r.Ver || string(after.Phases[0].Result) != `"kept"` || after.Scope != r.Scope {
					t.Errorf("the record is %+v, was %+v", after, r)
				}
			})
		}
	}
}

// A decision that stores contents is refused without the key, and changes nothing.
func TestSettlingWithoutTheKey(t *testing.T) {
	t.Parallel()
	for _, desk := range []string{"without a sealer", "denied"} {
		for name, s := range map[string]idem.Settlement{
			"an answer": {Answer: &idem.Response{Status: 201, Body: []byte(`{}`)}, By: "jane"},
			"a result":  {Result: []byte(`"charged"`), By: "jane"},
		} {
			t.Run(name+", "+desk, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t, sealing(newProvider(t, "one")))
				r := stuckSealed(t, tab)
				before := tab.Items(t)
				if err := idem.New(desks(t, tab)[desk], callertest.Anybody).Settle(t.Context(), r.PK, s); !errors.Is(err, store.ErrSealed) {
					t.Errorf("Settle returned %v", err)
				}
				tab.unchanged(t, before)
			})
		}
	}
}

// A data key that can be had again between reading and writing must not seal the empty
// contents of a record that was read closed.
func TestClosedContentsAreNotOverwritten(t *testing.T) {
	t.Parallel()
	tab := newTable(t, sealing(newProvider(t, "one")))
	r := stuckSealed(t, tab)
	before := tab.Items(t)
	p := newProvider(t, "one")
	p.set(errors.New("throttled"), false)
	desk := tab.process(t, sealing(p))
	engine := idem.New(readThen{desk, func() { p.set(nil, false) }}, callertest.Anybody)
	if err := engine.Settle(t.Context(), r.PK, idem.Settlement{Result: []byte(`"charged"`), By: "jane"}); !errors.Is(err, store.ErrSealed) {
		t.Errorf("Settle returned %v", err)
	}
	tab.unchanged(t, before)
	if err := engine.Settle(t.Context(), r.PK, idem.Settlement{Result: []byte(`"charged"`), By: "jane"}); err != nil {
		t.Errorf("with the key, Settle returned %v", err)
	}
	if r := tab.Only(t); string(r.Phases[0].Result) != `"kept"` || string(r.Phases[1].Result) != `"charged"` {
		t.Errorf("the record is %+v", r)
	}
}

// readThen calls then after each read.
type readThen struct {
	*dynamo.Store
	then func()
}

func (s readThen) Load(ctx context.Context, pk string) (*store.Record, error) {
	defer s.then()
	return s.Store.Load(ctx, pk)
}

// Of a new record only the scope is sealed, so all but that can be read without its data
// key. Nobody takes it over without: the answer could not be stored.
func TestNobodyTakesOverWithoutTheKey(t *testing.T) {
	t.Parallel()
	tab := newTable(t, sealing(newProvider(t, "one")))
	key := tabletest.NewKey()
	func() {
		defer func() { _ = recover() }()
		serve(t.Context(), tabletest.DeadAfterClaim{Store: tab.Store}, key, func(context.Context) (idem.Response, error) {
			panic("killed")
		})
	}()
	p := newProvider(t, "one")
	p.set(errors.New("access denied"), false)
	other, before := tab.process(t, sealing(p)), tab.Items(t)
	if r, err := other.Load(t.Context(), before[0]["pk"].(*types.AttributeValueMemberS).Value); !errors.Is(err, store.ErrSealed) || r == nil || r.State != store.Open || r.Lease.IsZero() {
		t.Fatalf("Load returned %+v, %v", r, err)
	}
	ctx := t.Context()
	isProblem(t, serve(ctx, other, key, tabletest.NeverRuns(t), tabletest.Ahead(time.Hour)), 503, "store_unavailable")
	tab.unchanged(t, before)
	// The take-over itself needs the key, not only the claim before it.
	prev, _ := other.Load(t.Context(), before[0]["pk"].(*types.AttributeValueMemberS).Value)
	next := prev.Clone()
	next.Owner, next.Ver, next.Lease = prev.Owner[1:]+"A", prev.Ver+1, prev.Lease.Add(time.Hour)
	if _, err := other.Commit(ctx, store.Commit{Prev: prev, Next: next}); !errors.Is(err, store.ErrSealed) {
		t.Errorf("a take-over gets %v", err)
	}
	tab.unchanged(t, before)
	p.set(nil, false)
	if re := serve(t.Context(), other, key, tabletest.Created("{}"), tabletest.Ahead(time.Hour)); re.Status != 201 {
		t.Errorf("the provider is back, and the answer is %d %s", re.Status, re.Body)
	}
}

// A program that encrypts finishes a record of which nothing is sealed yet: what it writes is
// sealed, though nobody has needed the data key so far.
func TestFirstContentsAreSealed(t *testing.T) {
	t.Parallel()
	const secret = "an answer that is nobody else's"
	ctx, now := t.Context(), time.Now()
	var db fakedynamo.DB
	process := func() *dynamo.Store {
		t.Helper()
		s, err := dynamo.New(&db, "records", sealing(newProvider(t, "one")))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := process().Claim(ctx, store.Claim{Now: now, Next: &store.Record{
		PK: "v1##k", ID: "i", Owner: "a", Ver: 1, State: store.Open, Created: now, Lease: now.Add(time.Minute), Expires: now.Add(time.Hour),
	}}); err != nil {
		t.Fatal(err)
	}
	if it := db.Items("records")[0]; it["seal"] == nil || it["scope"] != nil {
		t.Fatalf("claimed without a data key, or something is sealed: %v", it)
	}
	later := process()
	prev, err := later.Load(ctx, "v1##k")
	if err != nil {
		t.Fatal(err)
	}
	next := prev.Clone()
	next.Ver, next.State, next.Keep, next.Lease, next.Response = 2, store.Done, store.KeepNothing, time.Time{}, &store.Response{Status: 201, Body: []byte(secret)}
	if held, err := later.Commit(ctx, store.Commit{Prev: prev, Next: next}); err != nil || held != nil {
		t.Fatalf("%+v, %v", held, err)
	}
	if found := leaktest.Find(leaktest.Texts(db.Items("records")), secret); len(found) > 0 {
		t.Errorf("in the table: %q", found)
	}
	if r, err := process().Load(ctx, "v1##k"); err != nil || string(r.Response.Body) != secret {
		t.Errorf("%+v, %v", r, err)
	}
}
