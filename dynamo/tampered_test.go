package dynamo_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/tabletest"
	"github.com/samekey/samekey/seal"
)

// bound has the attributes of a sealed record that decide who and where.
var bound = []string{
	item.AttrPK, item.AttrID, item.AttrFP, item.AttrScheme, item.AttrSeal, item.AttrScope, item.AttrRoute, item.AttrFn, item.AttrHandler, item.AttrTenant,
}

// harmless has the other attributes, and what whoever changes them reaches.
var harmless = map[string]string{
	item.AttrVersion: "another layout is refused",
	item.AttrState:   "an answer without done, or done without an answer, is refused; stuck waits for people",
	item.AttrOwner:   "whose write counts: a holder loses its lease",
	item.AttrVer:     "the same",
	item.AttrLease:   "when it runs again",
	item.AttrExpires: "when the key is free",
	item.AttrKeep:    "the same",
	item.AttrUntil:   "the same",
	item.AttrCreated: "when a doubt is too old",
	item.AttrRun:     "when it runs again",
	item.AttrTries:   "how often it runs again",
	item.AttrCalls:   "which keys the next calls have: they may be made again",
	item.AttrPhases:  "without a result its phase runs again",
	item.AttrTimes:   "times for people",
	item.AttrHands:   "for people",
	item.AttrLastErr: "for people",
	item.AttrJobs:    "a job that isn't there is not delivered; kind, group and tenant are bound",
	item.AttrRequest: "without it only the client brings the request",
	item.AttrResp:    "without it a done record is refused",
}

// party is a caller, and the only handler that serves it.
type party struct {
	name, scope, route, tenant string
	handler                    store.HandlerID
}

func (p party) says(what string) string { return p.name + "'s " + what }

func (p party) request(key string) idem.Request {
	return idem.Request{
		Method: "POST", Path: "/", Route: p.route, Scope: p.scope, Tenant: p.tenant, Handler: p.handler, Key: key, Body: []byte(p.says("request")),
	}
}

// attacked is a table, on which the programs of all parties work.
type attacked struct {
	t     *testing.T
	db    *fakedynamo.DB
	store *dynamo.Store
	table item.Table
	what  string
}

func (w *attacked) engine(p party) *idem.Engine {
	return idem.New(w.store, func(o *idem.Options) {
		o.Function, o.Resumable, o.CallerFromOp, o.Logger = p.handler.Function, true, true, slog.New(slog.DiscardHandler)
		o.Fingerprint.CanonicalJSON = true // records name the scheme
	})
}

// handle is p's handler.
func (w *attacked) handle(p party, err error) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		result, aerr := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (string, error) {
			if err != nil { // a done record without a job has nothing but its answer
				tx.Stage(idem.Job{Kind: "mail", Group: p.name, Args: []byte(strconv.Quote(p.says("args")))})
			}
			return p.says("result"), nil
		})
		if aerr != nil {
			return idem.Response{}, aerr
		}
		w.sees(p, result)
		return idem.Response{Status: 201, Body: []byte(p.says("answer"))}, err
	}
}

// sees fails the test if p is shown what is another's.
func (w *attacked) sees(p party, text string) {
	w.t.Helper()
	if strings.Contains(text, "'s ") && !strings.Contains(text, p.name+"'s ") {
		w.t.Errorf("%s: %s is shown %s", w.what, p.name, text)
	}
}

// play has all parties retry all keys, all handlers try all tickets, and all jobs read.
func (w *attacked) play(parties []party, keys []string) {
	w.t.Helper()
	for _, it := range w.db.Items(attackedTable) {
		r, err := item.Read(it)
		if err != nil || r == nil {
			continue
		}
		for name, job := range r.Jobs {
			args, err := w.table.Args(w.t.Context(), r, name)
			of := slices.IndexFunc(parties, func(p party) bool { return p.tenant == r.Tenant && p.name == job.Group })
			if err == nil && (of < 0 || string(args) != strconv.Quote(parties[of].says("args"))) {
				w.t.Errorf("%s: job %s of group %q is delivered for %q: %s", w.what, name, job.Group, r.Tenant, args)
			}
		}
		for _, p := range parties {
			_, _ = w.engine(p).Resume(w.t.Context(), state.TicketFor(r), func(ctx context.Context, req *idem.Request) (idem.Response, error) {
				w.sees(p, string(req.Body))
				if req.Route != p.route || req.Tenant != p.tenant {
					w.t.Errorf("%s: the handler of %s runs a request of %s for %q", w.what, p.name, req.Route, req.Tenant)
				}
				return w.handle(p, errAttacked)(ctx)
			}, func(o *idem.ResumeOptions) { o.Handlers, o.Tenant = []store.HandlerID{p.handler}, p.tenant })
		}
	}
	for _, p := range parties {
		for _, key := range keys {
			re, err := w.engine(p).Do(w.t.Context(), p.request(key), w.handle(p, nil))
			if err == nil {
				w.sees(p, string(re.Body))
			}
		}
	}
}

// attack checks that an item is corrupt, if the attribute that was tampered with is bound.
func (w *attacked) attack(name string, it fakedynamo.Item) {
	w.t.Helper()
	if r, err := w.store.Load(w.t.Context(), item.PK(it)); slices.Contains(bound, name) && !errors.Is(err, store.ErrCorrupt) {
		w.t.Errorf("%s: Load returned %+v, %v; want ErrCorrupt", w.what, r, err)
	}
}

const attackedTable = "attacked"

func newAttacked(t *testing.T, what string, items []fakedynamo.Item) *attacked {
	t.Helper()
	sealer := seal.New(newProvider(t, "one"), func(o *seal.Options) { o.Required = true })
	w := &attacked{t: t, db: &fakedynamo.DB{}, what: what}
	for _, it := range items {
		if _, err := w.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(attackedTable), Item: it}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.store, err = dynamo.New(w.db, attackedTable, func(o *dynamo.Options) { o.Seal = sealer }); err != nil {
		t.Fatal(err)
	}
	w.table = item.Table{Access: w.db, Name: attackedTable, Seal: sealer}
	return w
}

var errAttacked = errors.New("down")

func TestWhoAndWhereAreBound(t *testing.T) {
	t.Parallel()
	ann := party{"ann", "ann", "POST /rides", "red", store.HandlerID{Function: "rides", Name: "POST /rides"}}
	bob := party{"bob", "bob", "POST /refunds", "blue", store.HandlerID{Function: "refunds", Name: "POST /refunds"}}
	other := ann // the same caller's other request
	other.name = "other ann"
	parties := []party{ann, bob, other}

	fresh := newAttacked(t, "the honest table", nil)
	var keys []string
	for _, p := range parties {
		for _, fails := range []error{nil, errAttacked} {
			key := "key-" + strconv.Itoa(len(keys))
			keys = append(keys, key)
			if _, err := fresh.engine(p).Do(t.Context(), p.request(key), fresh.handle(p, fails)); !errors.Is(err, fails) {
				t.Fatal(err)
			}
		}
	}
	items := fresh.db.Items(attackedTable) // in the order of the keys
	newAttacked(t, "nothing is changed", items).play(parties, keys)
	tried := 0
	for at, victim := range items[:2] {
		for name := range attributesOf(items) {
			if _, known := harmless[name]; known == slices.Contains(bound, name) {
				t.Fatalf("attribute %s is in both lists or in none", name)
			}
			for what, v := range tampered(victim, items, name) {
				it := maps.Clone(victim)
				if it[name] = v; v == nil {
					delete(it, name)
				}
				if pk := item.PK(it); pk == "" || v == nil && victim[name] == nil {
					continue
				}
				all := append(slices.Delete(slices.Clone(items), at, at+1), it) // in the place of another of the same key
				w := newAttacked(t, keys[at]+": "+name+" "+what, all)
				w.attack(name, it)
				w.play(parties, keys)
				tried++
			}
		}
	}
	if tried < 150 {
		t.Errorf("%d attacks: something is wrong with this test", tried)
	}
}

func attributesOf(items []fakedynamo.Item) map[string]bool {
	all := make(map[string]bool)
	for _, it := range items {
		for name := range it {
			all[name] = true
		}
	}
	return all
}

// tampered returns what an attacker may put in the place of an attribute.
func tampered(it fakedynamo.Item, items []fakedynamo.Item, name string) map[string]types.AttributeValue {
	all := map[string]types.AttributeValue{"taken away": nil}
	switch v := it[name].(type) {
	case *types.AttributeValueMemberS:
		all["changed"] = &types.AttributeValueMemberS{Value: v.Value + "x"}
	case *types.AttributeValueMemberB:
		b := bytes.Clone(v.Value)
		b[0] ^= 1
		all["changed"] = &types.AttributeValueMemberB{Value: b}
	case *types.AttributeValueMemberN:
		n, _ := strconv.ParseInt(v.Value, 10, 64)
		all["changed"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(n+1, 10)}
	}
	for i, from := range items {
		if from[name] != nil && !reflect.DeepEqual(from[name], it[name]) {
			all["of record "+strconv.Itoa(i)] = from[name]
		}
	}
	return all
}

// A handler that a client's retry hands an operation to goes on with what an earlier one
// has sealed: its phase, its job, and, for a completer, its request, which may lie beside
// the record.
func TestSealedContentsGoWithTheOperation(t *testing.T) {
	t.Parallel()
	before := party{"ann", "ann", "POST /rides", "red", store.HandlerID{Function: "rides", Name: "POST /rides"}}
	after := before
	after.handler = store.HandlerID{Function: "bookings", Name: "POST /bookings"}
	for name, size := range map[string]int{"in the record": 10, "compressed": 2000, "beside it": 20_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAttacked(t, name, nil)
			req := before.request("key")
			req.Body = []byte(incompressible(size))
			if name == "compressed" {
				req.Body = bytes.Repeat([]byte("x"), size)
			}
			if _, err := w.engine(before).Do(t.Context(), req, w.handle(before, errAttacked)); !errors.Is(err, errAttacked) {
				t.Fatal(err)
			}
			req.Handler = after.handler
			if _, err := w.engine(after).Do(t.Context(), req, w.handle(after, errAttacked)); !errors.Is(err, errAttacked) {
				t.Fatal(err)
			}
			r, err := w.store.Load(t.Context(), item.PK(w.db.Items(attackedTable)[0]))
			if err != nil || r.Handler != after.handler {
				t.Fatalf("Load returned the record of the %v, %v", r.Handler, err)
			}
			re, err := w.engine(after).Resume(t.Context(), state.TicketFor(r), func(ctx context.Context, got *idem.Request) (idem.Response, error) {
				if !bytes.Equal(got.Body, req.Body) || got.Route != req.Route {
					t.Errorf("the request is %s with %d bytes", got.Route, len(got.Body))
				}
				return w.handle(after, nil)(ctx)
			}, func(o *idem.ResumeOptions) { o.Handlers, o.Tenant = []store.HandlerID{after.handler}, after.tenant })
			if err != nil || string(re.Body) != "ann's answer" {
				t.Errorf("Resume returned %+v, %v", re, err)
			}
			if r, err = w.store.Load(t.Context(), r.PK); err != nil {
				t.Fatal(err)
			}
			if args := string(r.Jobs["0.0"].Args); args != `"ann's args"` {
				t.Errorf("the job's args are %s", args)
			}
		})
	}
}

// Whatever is altered in the table, the answer is record_corrupt, and
// nothing runs; and neither does the answer show a byte of the stored one.
func TestAlteredInTheTable(t *testing.T) {
	t.Parallel()
	secret := make([]byte, 900_000) // in three companions
	_, _ = rand.Read(secret)
	for name, spoil := range map[string]func(t *testing.T, tab *table, it map[string]types.AttributeValue){
		"the answer": func(_ *testing.T, _ *table, it map[string]types.AttributeValue) {
			x := it["resp"].(*types.AttributeValueMemberM).Value["x"].(*types.AttributeValueMemberB)
			x.Value[len(x.Value)/2] ^= 1
		},
		"another key's answer": func(t *testing.T, tab *table, it map[string]types.AttributeValue) {
			serve(t.Context(), tab.Store, tabletest.NewKey(), tabletest.Created("{}"))
			for _, other := range tab.Items(t) {
				if other["resp"] != nil && !cmp.Equal(other["pk"], it["pk"], anyValue) {
					it["resp"] = other["resp"]
				}
			}
		},
		"the data key": func(_ *testing.T, _ *table, it map[string]types.AttributeValue) {
			w := it["seal"].(*types.AttributeValueMemberM).Value["w"].(*types.AttributeValueMemberB)
			w.Value[3] ^= 1
		},
		"two companions": func(t *testing.T, tab *table, _ map[string]types.AttributeValue) {
			var parts []map[string]types.AttributeValue
			for _, part := range tab.Items(t) {
				if part["st"] == nil {
					parts = append(parts, part)
				}
			}
			parts[0]["b"], parts[1]["b"] = parts[1]["b"], parts[0]["b"]
			tab.Put(t, parts[0])
			tab.Put(t, parts[1])
		},
		"a truncated companion": func(t *testing.T, tab *table, _ map[string]types.AttributeValue) {
			for _, part := range tab.Items(t) {
				if b, ok := part["b"].(*types.AttributeValueMemberB); ok {
					b.Value = b.Value[:len(b.Value)-1]
					tab.Put(t, part)
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, sealing(newProvider(t, "one")))
			key := tabletest.NewKey()
			serve(t.Context(), tab.Store, key, tabletest.Created(string(secret)))
			for pk, it := range tab.parts(t) {
				if bytes.Contains(secret, it["b"].(*types.AttributeValueMemberB).Value[100:200]) {
					t.Errorf("%s is plain", pk)
				}
			}
			for _, it := range tab.Items(t) {
				if it["st"] != nil {
					spoil(t, tab, it)
					tab.Put(t, it)
				}
			}
			for _, s := range []store.Store{tab.Store, tab.process(t, sealing(newProvider(t, "one")))} {
				re := serve(t.Context(), s, key, tabletest.NeverRuns(t))
				isProblem(t, re, 500, "record_corrupt")
				if bytes.Contains(re.Body, secret[:20]) {
					t.Error("the answer shows the stored one")
				}
			}
		})
	}
}

func answerOf(it attributes) attributes { return it["resp"].(*types.AttributeValueMemberM).Value }

// A record that somebody has edited by hand is answered with 500: nothing runs a second
// time, nothing of the record is shown, and it stays as it is for an operator.
func TestEditedRecordRunsNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(attributes){
		"another layout version": func(it attributes) { it["v"] = tabletest.Num(2) },
		"no owner":               func(it attributes) { delete(it, "owner") },
		"an unknown state":       func(it attributes) { it["st"] = tabletest.Str("paused") },
		"no answer":              func(it attributes) { delete(it, "resp") },
		"a body of text":         func(it attributes) { answerOf(it)["b"] = tabletest.Str("SECRET") },
		"a lease of text":        func(it attributes) { it["lease_ms"] = tabletest.Str("0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			runs := 0
			serve := func() idem.Result {
				r := tabletest.Post("", "1")
				r.Header = http.Header{"Idempotency-Key": {"k"}}
				res, err := tab.Engine().Serve(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
					runs++
					return tabletest.Created("SECRET")(ctx)
				})
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			serve()
			it := tab.Items(t)[0]
			edit(it)
			tab.Put(t, it)
			for range 2 {
				res := serve()
				body := string(res.Body)
				if res.Status != http.StatusInternalServerError || !strings.Contains(body, "record_corrupt") || strings.Contains(body, "SECRET") || runs != 1 {
					t.Errorf("%d %s after %d runs, want 500 record_corrupt after 1", res.Status, body, runs)
				}
			}
			tab.unchanged(t, []map[string]types.AttributeValue{it})
		})
	}
}

// Headers that somebody has put into a record neither split the answer nor set a cookie.
func TestForgedHeadersAreNotReplayed(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	do := func() idem.Result {
		res, err := tab.Engine().Do(t.Context(), tabletest.Post("k", "1"), tabletest.Created("made"))
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	do()
	it := tab.Items(t)[0]
	answerOf(it)["h"] = &types.AttributeValueMemberM{Value: attributes{
		"Content-Type": tabletest.Str("application/json"), "Set-Cookie": tabletest.Str("session=forged"), "set-cookie": tabletest.Str("session=forged"),
		"Location": tabletest.Str("/\r\nSet-Cookie: session=forged"), "X-Amz-Meta": tabletest.Str("x"), "Www-Authenticate": tabletest.Str("Basic"),
	}}
	tab.Put(t, it)
	res := do()
	if diff := cmp.Diff(http.Header{"Content-Type": {"application/json"}}, res.Header); diff != "" || !res.Replayed {
		t.Errorf("replayed %v, headers (-want +got):\n%s", res.Replayed, diff)
	}
}
