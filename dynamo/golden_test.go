package dynamo_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/itemjson"
	"github.com/samekey/samekey/internal/testkit/tabletest"
	"github.com/samekey/samekey/seal"
)

// A release writes its golden items once, and no later change may alter the file.
var writeGolden = flag.String("write-golden", "", "write testdata/golden/NAME-plain.json and NAME-sealed.json, which must not exist")

// golden is the table of a release after the first half of goldenStories.
type golden struct {
	Time  time.Time         // of the writes
	Keys  map[string]string // the derived keys, by story
	Items []itemjson.Item
}

// goldenStory is an operation of two halves: a release writes its record, and a later
// release has to go on with it.
type goldenStory struct {
	opt func(*idem.Options)
	req func(*idem.Request)
	// handler runs in both halves; later is false in the first.
	handler func(p *goldenProcess, later bool) func(context.Context) (idem.Response, error)
	err     error                            // of the first half
	after   func(*testing.T, *goldenProcess) // the end of the first half

	// The later half: the retry's answer, by a replay or by the handler.
	later    func(*testing.T, *goldenProcess) // before the retry
	change   func(*idem.Request)              // makes another request of it
	wait     time.Duration
	status   int
	body     string
	replayed bool
	refused  error
}

// request is the story's request. Its key is the story's name.
func (s goldenStory) request(name string) idem.Request {
	req := tabletest.Post(strings.NewReplacer(" ", "-", ",", "").Replace(name), `{"amount":2000}`)
	req.Identity, req.Header = idem.Identity{Kind: "jwt", Subject: "zoë"}, http.Header{"Authorization": {"Bearer zoë"}}
	if s.req != nil {
		s.req(&req)
	}
	return req
}

// goesOn plays the later half of a story.
func (s goldenStory) goesOn(t *testing.T, name string, table golden, opts []func(*dynamo.Options)) {
	t.Helper()
	p := goldenAt(t, name, s, table.Time.Add(max(s.wait, time.Hour)), table.Items, opts...)
	if s.later != nil {
		s.later(t, p)
	}
	req := s.request(name)
	if s.change != nil {
		s.change(&req)
	}
	re, err := p.engine.Do(t.Context(), req, s.handler(p, true))
	if !errors.Is(err, s.refused) || re.Status != s.status || string(re.Body) != s.body || re.Replayed != s.replayed {
		t.Errorf("the retry's answer is %d %q, replayed %t, %v", re.Status, re.Body, re.Replayed, err)
	}
	for _, did := range p.ran {
		if did == "reserve" {
			t.Error("a phase that was committed ran again")
		}
	}
	if want, now := table.Keys[name], p.keys[name]; now != "" && now != want {
		t.Errorf("the call has the derived key %q, had %q", now, want)
	}
}

// goldenProcess is a process with one story.
type goldenProcess struct {
	name   string
	db     *fakedynamo.DB
	store  *idemtest.FaultyStore
	engine *idem.Engine
	ran    []string // what the handler did
	keys   map[string]string
}

// record is the story's record: the only one in its process's table.
func (p *goldenProcess) record(t *testing.T) *store.Record {
	t.Helper()
	var found *store.Record
	for _, it := range p.db.Items(goldenTable) {
		closed, err := item.Read(it)
		if err != nil {
			t.Fatal(err)
		}
		if closed == nil {
			continue
		}
		if found != nil {
			t.Fatal("two records")
		}
		if found, err = p.store.Load(t.Context(), closed.PK); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

const goldenTable = "golden"

// incompressible is text of n bytes that no compression makes smaller, always the same.
func incompressible(n int) string {
	var raw []byte
	for sum := sha256.Sum256(nil); len(raw) < n; sum = sha256.Sum256(sum[:]) {
		raw = append(raw, sum[:]...)
	}
	return base64.RawStdEncoding.EncodeToString(raw)[:n]
}

// ride is a handler of two phases: it reserves, and has the card charged. fails is the
// charge's error.
func ride(p *goldenProcess, fails error, opts ...idem.PhaseOption) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		ride, err := idem.Atomic(ctx, "reserve", func(_ context.Context, tx *idem.Tx) (string, error) {
			p.ran = append(p.ran, "reserve")
			tx.Stage(idem.Job{Kind: "mail", Args: []byte(`{"to":"zoë"}`), Group: "zoë"}, idem.NewJob("audit", 7))
			return "ride 1", nil
		})
		if err != nil {
			return idem.Response{}, err
		}
		charge, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (string, error) {
			p.ran = append(p.ran, "charge")
			p.keys[p.name] = tx.Key("payments")
			return "charge 1", fails
		}, append(opts, idem.Sends("payments", 2000))...)
		return idem.Response{Status: 201, Header: http.Header{"Content-Type": {"text/plain"}, "Location": {"/rides/caf\xe9"}}, Body: []byte(ride + ", " + charge)}, err
	}
}

var errDown = errors.New("the provider is down")

// unless returns err in the first half only.
func unless(later bool, err error) error {
	if later {
		return nil
	}
	return err
}

// settled is an operator's decision.
func settled(s idem.Settlement) func(*testing.T, *goldenProcess) {
	return func(t *testing.T, p *goldenProcess) {
		t.Helper()
		r := p.record(t)
		s.Seen = state.TicketFor(r)
		if err := p.engine.Settle(t.Context(), r.PK, s); err != nil {
			t.Fatal(err)
		}
	}
}

func resumable(o *idem.Options) { o.Function, o.Resumable = "rides", true }

func goldenStories() map[string]goldenStory {
	answers := func(body string) func(*goldenProcess, bool) func(context.Context) (idem.Response, error) {
		return func(*goldenProcess, bool) func(context.Context) (idem.Response, error) {
			return tabletest.Created(body)
		}
	}
	const done = "ride 1, charge 1"
	old := idem.Secret{ID: "2025", Key: []byte("a secret of 2025, long enough")}
	return map[string]goldenStory{
		"done with jobs": {
			handler: func(p *goldenProcess, _ bool) func(context.Context) (idem.Response, error) { return ride(p, nil) },
			status:  201, body: done, replayed: true,
			later: func(t *testing.T, p *goldenProcess) {
				want := map[string]store.Job{"0.0": {Kind: "mail", Args: []byte(`{"to":"zoë"}`), Group: "zoë"}, "0.1": {Kind: "audit", Args: []byte("7")}}
				if diff := cmp.Diff(want, p.record(t).Jobs); diff != "" {
					t.Errorf("jobs (-want +got):\n%s", diff)
				}
			},
		},
		"a compressed answer":      {handler: answers(strings.Repeat("all work and no play ", 100)), status: 201, body: strings.Repeat("all work and no play ", 100), replayed: true},
		"an answer in a companion": {handler: answers(incompressible(600)), status: 201, body: incompressible(600), replayed: true},
		"an answer without a body": {handler: answers(""), status: 201, replayed: true},
		"of a caller of a tenant, by a delivery's key": {
			handler: answers("x"), req: func(r *idem.Request) { r.Tenant, r.DeliveryKey, r.Handler.Name = "blue", true, "POST /orders" },
			status: 201, body: "x", replayed: true,
		},
		"another request":     {handler: answers("x"), change: func(r *idem.Request) { r.Body = []byte("{}") }, refused: idem.ErrMismatch},
		"a keyed fingerprint": {handler: answers("x"), opt: func(o *idem.Options) { o.Fingerprint.Secrets = []idem.Secret{old} }, status: 201, body: "x", replayed: true},
		"given back after a call": {
			handler: func(p *goldenProcess, later bool) func(context.Context) (idem.Response, error) {
				return ride(p, unless(later, errDown))
			},
			opt: resumable, err: errDown, status: 201, body: done,
		},
		"its process died": {
			handler: func(p *goldenProcess, later bool) func(context.Context) (idem.Response, error) {
				return func(ctx context.Context) (idem.Response, error) {
					re, err := ride(p, nil)(ctx)
					if !later {
						p.store.Crash()
					}
					return re, err
				}
			},
			err: idem.ErrUnavailable, status: 201, body: done,
		},
		"a call that is not repeated": {
			handler: func(p *goldenProcess, _ bool) func(context.Context) (idem.Response, error) {
				return ride(p, errDown, idem.NotIdempotent())
			},
			err: idem.ErrStuck, refused: idem.ErrStuck,
		},
		"settled by a result": {
			handler: func(p *goldenProcess, later bool) func(context.Context) (idem.Response, error) {
				return ride(p, unless(later, errDown), idem.NotIdempotent())
			},
			err: idem.ErrStuck, after: settled(idem.Settlement{Result: []byte(`"charge 1"`), By: "jane"}),
			status: 201, body: done,
		},
		"settled by an answer": {
			handler: func(p *goldenProcess, _ bool) func(context.Context) (idem.Response, error) {
				return ride(p, errDown, idem.NotIdempotent())
			},
			err: idem.ErrStuck, status: 402, body: "declined", replayed: true,
			after: settled(idem.Settlement{Answer: &idem.Response{Status: 402, Body: []byte("declined")}}),
		},
		"a large request for the completer": {
			handler: func(p *goldenProcess, later bool) func(context.Context) (idem.Response, error) {
				return ride(p, unless(later, errDown))
			},
			opt: resumable, err: errDown, req: func(r *idem.Request) { r.Body = []byte(incompressible(700)) },
			after: func(t *testing.T, p *goldenProcess) {
				if _, err := p.engine.Resume(t.Context(), state.TicketFor(p.record(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) {
					return ride(p, errDown)(ctx)
				}); err == nil || p.record(t).Tries != 1 {
					t.Fatalf("the first try returned %v", err)
				}
			},
			later: func(t *testing.T, p *goldenProcess) {
				re, err := p.engine.Resume(t.Context(), state.TicketFor(p.record(t)), func(ctx context.Context, r *idem.Request) (idem.Response, error) {
					query, _, _ := strings.Cut(tabletest.Planted, "&token=")
					if string(r.Body) != incompressible(700) || r.Query != query || r.Path != "/orders" {
						t.Errorf("the request is %s %s?%s with %d bytes", r.Method, r.Path, r.Query, len(r.Body))
					}
					return ride(p, nil)(ctx)
				})
				if err != nil || string(re.Body) != done {
					t.Errorf("Resume returned %+v, %v", re, err)
				}
			},
			status: 201, body: done, replayed: true,
		},
	}
}

// process begins a process whose clock stands at now, on a table with items.
func goldenAt(t *testing.T, name string, s goldenStory, now time.Time, items []itemjson.Item, opts ...func(*dynamo.Options)) *goldenProcess {
	t.Helper()
	p := &goldenProcess{name: name, db: &fakedynamo.DB{}, keys: make(map[string]string)}
	for _, it := range items {
		if _, err := p.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(goldenTable), Item: it}); err != nil {
			t.Fatal(err)
		}
	}
	inner, err := dynamo.New(p.db, goldenTable, append(opts, func(o *dynamo.Options) { o.Inline = 500 })...)
	if err != nil {
		t.Fatal(err)
	}
	p.store = idemtest.Faulty(inner, nil)
	p.engine = idem.New(p.store, callertest.Anybody, func(o *idem.Options) {
		o.Now, o.Function = func() time.Time { return now }, "rides"
		if s.opt != nil {
			s.opt(o)
		}
	})
	return p
}

// Records that each release has written are read by this one, which goes on with them:
// replays answers, returns results of phases, repeats calls under their keys, takes over,
// settles, delivers, and refuses.
//
// A release adds its items, before its tag:
//
//	go test ./dynamo -run '^TestGoldenItems$' -write-golden v1.2
func TestGoldenItems(t *testing.T) {
	t.Parallel()
	sealer := func(current string) func(*dynamo.Options) { return sealing(newProvider(t, current, "old", "new")) }
	if *writeGolden != "" {
		writeGoldenItems(t, *writeGolden+"-plain")
		writeGoldenItems(t, *writeGolden+"-sealed", sealer("old"))
	}
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tables map[string]golden
		if err := json.Unmarshal(raw, &tables); err != nil {
			t.Fatal(err)
		}
		for with, opts := range map[string][]func(*dynamo.Options){
			"with another current key": {sealer("new")},
			"with encryption off":      {sealing(newProvider(t, "new", "old"), func(o *seal.Options) { o.OpenOnly = true })},
			"without encryption":       nil,
		} {
			if opts == nil && strings.HasSuffix(file, "-sealed.json") {
				continue
			}
			for name, story := range goldenStories() {
				table, there := tables[name]
				if !there {
					continue // of a release that had no such record
				}
				t.Run(filepath.Base(file)+"/"+with+"/"+name, func(t *testing.T) {
					t.Parallel()
					story.goesOn(t, name, table, opts)
				})
			}
		}
	}
}

// writeGoldenItems plays the first half of all stories.
func writeGoldenItems(t *testing.T, file string, opts ...func(*dynamo.Options)) {
	t.Helper()
	tables := make(map[string]golden)
	for name, s := range goldenStories() {
		now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		p := goldenAt(t, name, s, now, nil, opts...)
		if _, err := p.engine.Do(t.Context(), s.request(name), s.handler(p, false)); !errors.Is(err, s.err) {
			t.Fatalf("%s: %v", name, err)
		}
		p.store.Reset(nil) // another process of the release, after a crash
		if s.after != nil {
			s.after(t, p)
		}
		table := golden{Time: now, Keys: p.keys}
		for _, it := range p.db.Items(goldenTable) {
			table.Items = append(table.Items, it)
		}
		tables[name] = table
	}
	raw, err := json.MarshalIndent(tables, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata/golden", 0o750); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join("testdata/golden", file+".json"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(raw, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
