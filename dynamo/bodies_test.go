package dynamo_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/meter"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/storetest"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// Bodies of every size come back byte for byte, in as many companions as they need, which are
// written and read eight at once and outlive their record.
func TestBodiesOfEverySize(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	for _, tt := range []struct {
		size       int
		random     bool
		companions int
	}{
		{0, false, 0},
		{1, true, 0},
		{4 * kib, true, 0},
		{4*kib + 1, true, 1},
		{64 * kib, false, 0},
		{390 * kib, true, 1},
		{399 * kib, true, 2},
		{1 << 20, true, 3},
		{6 << 20, true, 16},
		{6 << 20, false, 1},
	} {
		t.Run(fmt.Sprintf("%d bytes, random=%t", tt.size, tt.random), func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			engine := tab.Engine(func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })
			body := bytes.Repeat([]byte{'a'}, tt.size)
			if tt.random {
				_, _ = rand.Read(body)
			}
			req := tabletest.Post(tabletest.NewKey(), "{}")
			res, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) {
				return idem.Response{Status: http.StatusOK, Body: body}, nil
			})
			if err != nil || !bytes.Equal(res.Body, body) {
				t.Fatalf("first answer has %d bytes, %v", len(res.Body), err)
			}
			parts, c := tab.parts(t), tab.Transport.Calls()
			exp := tab.Only(t).Expires
			for pk, it := range parts {
				if ends, err := strconv.ParseInt(it["exp_s"].(*types.AttributeValueMemberN).Value, 10, 64); err != nil || ends <= exp.Unix() {
					t.Errorf("%s ends at %d, before its record at %d", pk, ends, exp.Unix())
				}
			}
			batches := (tt.companions + 7) / 8 // for the memory of a small function
			if len(parts) != tt.companions || c["PutItem"]-1+c["BatchWriteItem"] != batches {
				t.Errorf("%d companions by %v, want %d by %d calls", len(parts), c, tt.companions, batches)
			}
			tab.Transport.Reset()
			tabletest.Replays(t, engine, req, string(body))
			if c := tab.Transport.Calls(); c["GetItem"]+c["BatchGetItem"] != batches {
				t.Errorf("calls %v, want %d reads of the body", c, batches)
			}
		})
	}
}

// A body is compressed where that saves a unit, and only there.
func TestBodiesAreCompressedWhereThatSavesAUnit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body   string
		zipped bool
		units  int
	}{
		"short":                         {strings.Repeat("x", 300), false, 1},
		"it saves a unit":               {strings.Repeat("x", 1500), true, 1},
		"it saves two":                  {randomText(500) + strings.Repeat("x", 2500), true, 1},
		"it doesn't compress":           {noise(3000), false, 4},
		"it compresses within its unit": {noise(1100) + strings.Repeat("x", 100), false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			var requests map[string]types.AttributeValue
			req := tabletest.Post("key", tt.body)
			if _, err := tab.Engine(func(o *idem.Options) { o.Function, o.Resumable = "f", true }).Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
				requests = tab.Items(t)[0]
				return tabletest.Created(tt.body)(ctx)
			}); err != nil {
				t.Fatal(err)
			}
			for attr, it := range map[string]map[string]types.AttributeValue{"req": requests, "resp": tab.Items(t)[0]} {
				_, zipped := it[attr].(*types.AttributeValueMemberM).Value["z"]
				if units := writeUnits(it); zipped != tt.zipped || units != tt.units {
					t.Errorf("%s is compressed: %t, %d units; want %t, %d", attr, zipped, units, tt.zipped, tt.units)
				}
			}
		})
	}
}

// An answer that can't be kept is done all the same: its status is stored, and a retry is told so.
func TestAnswerThatIsNotKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer idem.Response
		fault  dbfault.Fault // of the finish
	}{
		"a body over the limit": {idem.Response{Status: 201, Body: []byte(randomText(defaults.MaxBody + 1))}, nil},
		"headers over an item":  {idem.Response{Status: 201, Header: http.Header{"Link": {strings.Repeat("x", 401<<10)}}}, nil},
		"the table refuses it":  {idem.Response{Status: 201, Body: []byte("done")}, dbfault.AnswerError(http.StatusBadRequest, "ValidationException", "Item size has exceeded")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			if tt.fault != nil {
				tab.Transport.Fault = tabletest.On("UpdateItem", 2, tt.fault)
			}
			engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
			res, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return tt.answer, nil })
			if err != nil || !bytes.Equal(res.Body, tt.answer.Body) || len(tab.Items(t)) != 1 {
				t.Fatalf("got %d bytes, %v, in %d items", len(res.Body), err, len(tab.Items(t)))
			}
			if _, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrNotKept) {
				t.Errorf("a retry got %v, want not kept", err)
			}
		})
	}
}

// Companions are as patient as the record's own writes. What can't be written in all the time
// there is leaves a plain request done, without its body, and an operation with phases open:
// its next attempt stores the answer.
func TestAnswerWhosePartsAreNotWritten(t *testing.T) {
	t.Parallel()
	denied := dbfault.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected")
	for name, tt := range map[string]struct {
		fault        dbfault.Fault
		fails        int
		handler      string
		first, retry error
	}{
		"denied once": {denied, 1, "plain", nil, nil},
		"throttled for longer than the client tries": {dbfault.Throttle, 13, "plain", nil, nil},
		"throttled for good":                         {dbfault.Throttle, 1000, "plain", nil, idem.ErrNotKept},
		"throttled for good, of a finish":            {dbfault.Throttle, 1000, "finish", idem.ErrUnavailable, nil},
		"denied, after a phase":                      {denied, 1000, "phase", idem.ErrUnavailable, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, tab *table) {
				body, clock := randomText(20<<10), idemtest.NewClock()
				answer := func(ctx context.Context) (idem.Response, error) {
					switch tt.handler {
					case "finish":
						return idem.Finish(ctx, func(ctx context.Context, _ *idem.Tx) (idem.Response, error) { return tabletest.Created(body)(ctx) })
					case "phase":
						return up(body)(ctx)
					}
					return tabletest.Created(body)(ctx)
				}
				tab.Transport.Fault = func(op string, n int) dbfault.Fault {
					if op == "PutItem" && n > 1 && n <= 1+tt.fails { // the first is the claim
						return tt.fault
					}
					return nil
				}
				engine, req := tab.Engine(func(o *idem.Options) { o.Now, o.Lease = clock.Now, 20*time.Second }), tabletest.Post(tabletest.NewKey(), "{}")
				if res, err := engine.Do(t.Context(), req, answer); !errors.Is(err, tt.first) || (err == nil) != (string(res.Body) == body) {
					t.Fatalf("got %d bytes, %v, want %v", len(res.Body), err, tt.first)
				}
				tab.Transport.Fault = nil
				clock.Advance(time.Hour)
				res, err := engine.Do(t.Context(), req, answer)
				if !errors.Is(err, tt.retry) || err == nil && (string(res.Body) != body || res.Replayed != (tt.first == nil)) {
					t.Errorf("the retry got %d bytes, replayed %t, %v, want %v", len(res.Body), res.Replayed, err, tt.retry)
				}
			})
		})
	}
}

// Companions that are gone or aren't what was stored: said so, never run again.
func TestSpoiltCompanions(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(map[string]types.AttributeValue){
		"cut off": func(it map[string]types.AttributeValue) {
			b := it["b"].(*types.AttributeValueMemberB)
			b.Value = b.Value[:len(b.Value)-1]
		},
		"altered": func(it map[string]types.AttributeValue) { it["b"].(*types.AttributeValueMemberB).Value[0] ^= 1 },
		"gone":    func(it map[string]types.AttributeValue) { delete(it, "b") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
			if _, err := engine.Do(t.Context(), req, tabletest.Created(noise(9<<10))); err != nil {
				t.Fatal(err)
			}
			for _, it := range tab.Items(t) {
				if _, isRecord := it["st"]; isRecord {
					continue
				}
				spoil(it)
				tab.Put(t, it)
			}
			if _, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrNotKept) {
				t.Errorf("a retry got %v, want not kept", err)
			}
		})
	}
}

// The companions of a body belong to one try of one attempt: neither a worker that
// lost its lease, in a process that counts from the start too, nor the attempt's
// own next try can touch those of the finish that landed.
func TestCompanionsAreTheAttemptsOwn(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	another, err := dynamo.New(tab.Client, tab.Name)
	if err != nil {
		t.Fatal(err)
	}
	finish := func(t *testing.T, st *dynamo.Store, r *store.Record, owner, body string) *store.Record {
		t.Helper()
		prev := r.Clone()
		prev.Owner = owner
		next := prev.Clone()
		next.State, next.Ver, next.Response = store.Done, prev.Ver+1, &idem.Response{Status: 200, Body: []byte(body)}
		held, err := st.Commit(t.Context(), store.Commit{Prev: prev, Next: next})
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	for name, late := range map[string]struct {
		store *dynamo.Store
		owner string
	}{
		"a worker of another process": {another, "late"},
		"another try of the attempt":  {tab.Store, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, err := dynamo.New(tab.Client, tab.Name)
			if err != nil {
				t.Fatal(err)
			}
			r, body := tab.held(t), randomText(30<<10)
			if held := finish(t, first, r, r.Owner, body); held != nil {
				t.Fatalf("refused with %+v", held)
			}
			owner, st := late.owner, late.store
			if owner == "" {
				owner, st = r.Owner, first
			}
			if held := finish(t, st, r, owner, randomText(30<<10)); held == nil {
				t.Error("the second finish landed")
			}
			now, err := first.Load(t.Context(), r.PK)
			if err == nil {
				err = first.LoadBody(t.Context(), now)
			}
			if err != nil || string(now.Response.Body) != body {
				t.Errorf("the body is not the one that was committed: %v", err)
			}
		})
	}
}

// Whoever reads a finished record finds its body, at any moment.
func TestBodyIsThereBeforeItsRecordSaysSo(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	finishes := 0
	tab.Transport.Fault = func(op string, _ int) dbfault.Fault {
		if op != "UpdateItem" {
			return nil
		}
		return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
			finishes++
			companions := 0
			for _, it := range tab.Items(t) {
				if it["st"] == nil && it["b"] != nil {
					companions++
				}
			}
			if companions != 1 {
				t.Errorf("the finish is sent with %d companions written", companions)
			}
			return base.RoundTrip(req)
		}
	}
	if _, err := tab.Engine().Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), tabletest.Created(randomText(30<<10))); err != nil || finishes != 1 {
		t.Errorf("%v after %d finishes", err, finishes)
	}
}

// However often a finish is tried, its body is written once.
func TestFinishTriedAgainWritesItsBodyOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dbfault.Fault{
		"no answer, and not applied": dbfault.LoseRequest,
		"no answer, but applied":     dbfault.LoseAnswer,
		"refused":                    dbfault.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected"),
		"a conflict":                 dbfault.Conflict,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			tab.SendOnce(t)
			times := 3
			if name == "refused" {
				times = 1 // then it is the status that is stored
			}
			tab.Transport.Fault = tabletest.On("UpdateItem", times, fault)
			engine := tab.Engine(func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })
			req, body := tabletest.Post(tabletest.NewKey(), "{}"), randomText(2<<20)
			if _, err := engine.Do(t.Context(), req, tabletest.Created(body)); err != nil {
				t.Fatal(err)
			}
			size := 0
			for _, it := range tab.Items(t) {
				if b, ok := it["b"].(*types.AttributeValueMemberB); ok && it["st"] == nil {
					size += len(b.Value)
				}
			}
			if size > 2<<20 {
				t.Errorf("%d KB of companions for an answer of 2 MB", size>>10)
			}
			tabletest.Replays(t, engine, req, body)
		})
	}
}

// An Atomic finish that runs again with another answer stores that one.
func TestFinishThatRunsAgainStoresItsOwnBody(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	tab.Transport.Fault = tabletest.On("TransactWriteItems", 1, dbfault.Conflict)
	runs, last := 0, ""
	engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
	_, err := engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			runs++
			last = randomText(20 << 10)
			tx.Write(dynamo.Put(app, counter{ID: "c", N: runs}))
			return idem.Response{Status: 201, Body: []byte(last)}, nil
		})
	})
	if err != nil || runs < 2 {
		t.Fatalf("%d runs, %v", runs, err)
	}
	tabletest.Replays(t, engine, req, last)
}

// A body of many parts takes one call, and where the role doesn't allow batches,
// one for each part. The role lacks them on purpose: no call is told as denied.
func TestBatchesOfCompanions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault func(op string, n int) dbfault.Fault
		want  calls // for the answer and one replay
	}{
		"one call": {want: calls{"PutItem": 2, "BatchWriteItem": 1, "UpdateItem": 1, "BatchGetItem": 1}},
		"not allowed": {
			fault: func(op string, _ int) dbfault.Fault {
				if strings.HasPrefix(op, "Batch") {
					return dbfault.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected")
				}
				return nil
			},
			want: calls{"PutItem": 2 + 4, "BatchWriteItem": 1, "UpdateItem": 1, "BatchGetItem": 1, "GetItem": 4},
		},
		"only reads are allowed, as by FunctionPolicy": {
			fault: func(op string, _ int) dbfault.Fault {
				if op == "BatchWriteItem" {
					return dbfault.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected")
				}
				return nil
			},
			want: calls{"PutItem": 2 + 4, "BatchWriteItem": 1, "UpdateItem": 1, "BatchGetItem": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			tab.Transport.Fault = tt.fault
			engine := tab.Engine(func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })
			req, body := tabletest.Post(tabletest.NewKey(), "{}"), randomText(2<<20)
			var sum meter.Meter
			if _, err := engine.Do(meter.With(t.Context(), &sum), req, tabletest.Created(body)); err != nil {
				t.Fatal(err)
			}
			if faults := sum.Cost().Faults; len(faults) > 0 {
				t.Errorf("calls are told as failed: %v", faults)
			}
			tabletest.Replays(t, engine, req, body)
			if diff := cmp.Diff(tt.want, tab.Transport.Calls()); diff != "" {
				t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
			}
		})
	}
}

// So does an answer that has jobs: why one of them is parked is written later.
func TestAnswerLeavesRoomForParking(t *testing.T) {
	t.Parallel()
	for size, fits := range map[int]bool{370 << 10: true, 395 << 10: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			engine := tab.Engine()
			_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
				return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					half := idem.NewJob("mail", storetest.Noise(size*3/8)) // in base64
					tx.Stage(half, half)
					return idem.Response{Status: 201}, nil
				})
			})
			if (err == nil) != fits || !fits && !errors.Is(err, store.ErrTooLarge) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// strongly refuses reads that aren't strongly consistent.
type strongly struct {
	dynamo.API
	t     *testing.T
	reads int
}

func (s *strongly) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if s.reads++; !aws.ToBool(in.ConsistentRead) {
		s.t.Error("an item is read weakly")
	}
	return s.API.GetItem(ctx, in, opts...)
}

func (s *strongly) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	for _, of := range in.RequestItems {
		if s.reads++; !aws.ToBool(of.ConsistentRead) {
			s.t.Error("items are read weakly")
		}
	}
	return s.API.BatchGetItem(ctx, in, opts...)
}

// What decides is read strongly: a record, and its body, alone and as a batch. Companions outlive an
// answer that has no expiry of its own yet, because its jobs wait.
func TestReadsThatDecideAreStrong(t *testing.T) {
	t.Parallel()
	for _, kib := range []int{20, 1000} {
		var db fakedynamo.DB
		api := &strongly{API: &db, t: t}
		st, err := dynamo.New(api, "records")
		if err != nil {
			t.Fatal(err)
		}
		engine := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })
		req, body := idem.Request{Key: "k", Method: "POST", Path: "/"}, noise(kib<<10)
		if _, err := engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
			return idem.Response{Status: 201, Body: []byte(body)}, idem.Stage(ctx, idem.NewJob("mail", 1))
		}); err != nil {
			t.Fatal(err)
		}
		for _, it := range db.Items("records") {
			if secs, ok := it["exp_s"].(*types.AttributeValueMemberN); ok && it["st"] == nil {
				ends, _ := strconv.ParseInt(secs.Value, 10, 64)
				if left := time.Until(time.Unix(ends, 0)); left < defaults.Retention+24*time.Hour {
					t.Errorf("a part is kept for %v", left)
				}
			}
		}
		req.ReadFirst = true
		if res, err := engine.Do(t.Context(), req, nil); err != nil || string(res.Body) != body || api.reads != 2 {
			t.Errorf("%d bytes after %d reads, %v; want two reads", len(res.Body), api.reads, err)
		}
	}
}
