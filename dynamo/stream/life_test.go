package stream_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/worker"
	"github.com/samekey/samekey/seal"
)

// counted is a provider that counts its calls. pad makes its wrapped data keys longer.
type counted struct {
	seal.Provider
	pad int

	mu                sync.Mutex
	generated, opened int
}

// keys are the names of a provider's key, and how much longer its wrapped data keys are
// than those of [seal.NewStatic].
type keys struct {
	name string
	pad  int
}

var (
	staticKeys = keys{"2026-11", 0}
	// Those of AWS KMS have 184 bytes.
	kmsKeys = keys{"arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab", 184 - 60}
)

func (k keys) provider(t testing.TB) *counted {
	t.Helper()
	p, err := seal.NewStatic(k.name, map[string][]byte{k.name: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return &counted{Provider: p, pad: k.pad}
}

func (k *counted) Generate(ctx context.Context) (seal.DataKey, error) {
	k.mu.Lock()
	k.generated++
	k.mu.Unlock()
	data, err := k.Provider.Generate(ctx)
	data.Wrapped = append(data.Wrapped, make([]byte, k.pad)...)
	return data, err
}

func (k *counted) Open(ctx context.Context, id string, wrapped []byte) ([]byte, error) {
	k.mu.Lock()
	k.opened++
	k.mu.Unlock()
	return k.Provider.Open(ctx, id, wrapped[:len(wrapped)-k.pad])
}

// life is a table with the processes of an application, and what each step of its
// records' life has cost.
type life struct {
	*testing.T
	tab       *table
	costs     []string
	providers map[string]*counted

	mu    sync.Mutex
	calls []string
}

// process is the store of a process of its own.
func (l *life) process(name string, sealed *keys) *dynamo.Store {
	l.Helper()
	s, err := dynamo.New(l.tab.Client, l.tab.Name, func(o *dynamo.Options) {
		if sealed != nil {
			l.providers[name] = sealed.provider(l)
			o.Seal = seal.New(l.providers[name])
		}
		o.Units = true
		o.Hooks.Called = func(_ context.Context, c store.Call) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.calls = append(l.calls, fmt.Sprintf("%s %g+%g", c.Op, c.ReadUnits, c.WriteUnits))
		}
	})
	if err != nil {
		l.Fatal(err)
	}
	return s
}

// cost ends a step. Calls of a step may come in any order.
func (l *life) cost(step string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.calls)
	l.costs = append(l.costs, step+": "+strings.Join(l.calls, ", "))
	l.calls = nil
}

// do asks an engine, and checks the status.
func (l *life) do(e *idem.Engine, req idem.Request, status int, fn func(context.Context) (idem.Response, error)) {
	l.Helper()
	if re, err := e.Do(l.Context(), req, fn); re.Status != status {
		l.Errorf("the answer is %d, %v; want %d", re.Status, err, status)
	}
}

// noise is text of n bytes that doesn't compress well.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}

// paid books, stages a job and charges; the charge's error is fails. size is of the
// answer.
func paid(fails error, size int, opts ...idem.PhaseOption) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "book", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Stage(idem.NewJob("mail", "zoë"))
			return "booked", nil
		}); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (string, error) { return "charged", fails }, opts...)
		return idem.Response{Status: 201, Body: []byte(noise(size))}, err
	}
}

// live plays the whole life of records: claim, phases, finish, replay, companions, jobs,
// drain, completer and settlement.
func live(t *testing.T, sealed *keys) *life {
	t.Helper()
	l := &life{T: t, tab: newTable(t), providers: make(map[string]*counted)}
	feed, box, queue := l.tab.tail(t), &outbox{}, &mailbox{}
	down := errors.New("down")
	options := func(o *idem.Options) { o.Resumable, o.Function, o.Lease = true, "rides", tabletest.Lease }
	one, two := idem.New(l.process("function one", sealed), callertest.Anybody, options), idem.New(l.process("function two", sealed), callertest.Anybody, options)
	desk := idem.New(l.process("desk", sealed), callertest.Anybody)
	w := worker.New(l.tab.Client, l.process("worker", sealed), completer.NewQueue(queue, "https://tickets"), func(o *worker.Options) {
		o.Sink = box
		o.Functions = completer.InProcess(func(ctx context.Context, ticket jobs.Ticket) error {
			_, err := two.Resume(ctx, ticket, func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return paid(nil, 100)(ctx) })
			return err
		})
		o.Sweep = func(o *stream.SweepOptions) { o.PagesPerSecond = 1e6 }
	})
	request := func(name string) idem.Request {
		return idem.Request{Key: name, Identity: idem.Identity{Kind: "jwt", Subject: "zoë"}, Method: "POST", Path: "/rides", Route: "POST /rides", Body: []byte(`{"amount":2000}`)}
	}

	l.do(one, request("small"), 201, paid(nil, 100))
	l.cost("claim, phases, finish")
	l.do(one, request("small"), 201, nil)
	l.cost("a replay")
	l.do(two, request("small"), 201, nil)
	l.cost("a replay by another process")
	l.do(one, request("large"), 201, paid(nil, 20<<10))
	l.cost("an answer in a companion")
	l.do(two, request("large"), 201, nil)
	l.cost("its replay")
	l.do(one, request("abandoned"), 0, paid(down, 100))
	l.cost("a failed attempt")
	l.do(one, request("retried"), 0, paid(down, 100))
	l.do(two, request("retried"), 201, paid(nil, 100))
	l.cost("a failed attempt, and a retry that takes over")
	l.do(one, request("stuck"), 0, paid(down, 100, idem.NotIdempotent()))
	l.cost("a stuck operation")
	stuck := l.tab.stuck(t)
	if err := desk.Settle(t.Context(), stuck, idem.Settlement{Result: []byte(`"charged"`), By: "jane"}); err != nil {
		t.Fatal(err)
	}
	l.cost("settled")
	l.do(two, request("stuck"), 201, paid(nil, 100, idem.NotIdempotent()))
	l.cost("its retry")
	if seq := handle(t, w, feed.event(t)); seq != "" {
		t.Errorf("reported %q", seq)
	}
	l.cost("the stream, with the jobs of five operations")
	if queue.len() == 0 {
		t.Fatal("no ticket")
	}
	if _, err := w.Invoke(t.Context(), queue.take()); err != nil {
		t.Fatal(err)
	}
	l.cost("the completer's tickets")
	if seq := handle(t, w, feed.event(t)); seq != "" {
		t.Errorf("reported %q", seq)
	}
	l.cost("the stream once more")
	if _, err := w.Invoke(t.Context(), []byte(`{"detail-type":"Scheduled Event","source":"aws.events"}`)); err != nil {
		t.Fatal(err)
	}
	l.cost("a sweep")
	if len(box.all) != 5 {
		t.Errorf("%d jobs were delivered, want 5", len(box.all))
	}
	return l
}

// stuck is the key of the only stuck record.
func (tab *table) stuck(t *testing.T) string {
	t.Helper()
	var found []string
	for _, it := range tab.Items(t) {
		if r, err := dynamo.Decode(it); err == nil && r != nil && r.State == store.Stuck {
			found = append(found, r.PK)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d records are stuck", len(found))
	}
	return found[0]
}

// Encryption adds no call to DynamoDB to the whole life of a record, and no unit as long as
// the record stays within its KB. Each process asks the key service once for a data key
// that it seals with, and once for each data key of another process, however many
// requests, records and jobs it serves.
func TestLifeSealed(t *testing.T) {
	t.Parallel()
	plain := live(t, nil)
	for name, k := range map[string]*keys{"keys of NewStatic": &staticKeys, "keys of KMS": &kmsKeys} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sealed := live(t, k)
			for i, step := range sealed.costs {
				t.Log(step)
				if diff := cmp.Diff(plain.costs[i], step); diff != "" {
					t.Errorf("calls with read+write units (-plain +sealed):\n%s", diff)
				}
			}
			got := make(map[string]string)
			for name, p := range sealed.providers {
				got[name] = fmt.Sprintf("%d made, %d opened", p.generated, p.opened)
			}
			want := map[string]string{
				"function one": "1 made, 0 opened",
				"function two": "1 made, 1 opened",
				"worker":       "0 made, 1 opened",
				"desk":         "0 made, 1 opened",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("data keys (-want +got):\n%s", diff)
			}
		})
	}
}
