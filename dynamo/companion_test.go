package dynamo_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

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
	tab.Transport.Fault = func(op string, _ int) dynamotest.Fault {
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

// A part of a body that could not be written fails the finish, which then is made
// again with all parts.
func TestCompanionRefusedOnceIsWrittenAgain(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
		if op == "PutItem" && n == 2 { // the first is the claim
			return dynamotest.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected")
		}
		return nil
	}
	engine, req, body := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}"), randomText(20<<10)
	if res, err := engine.Do(t.Context(), req, tabletest.Created(body)); err != nil || string(res.Body) != body {
		t.Fatalf("got %d bytes, %v", len(res.Body), err)
	}
	if n := tab.Transport.Calls()["PutItem"]; n != 3 {
		t.Errorf("%d puts, want the claim's and two tries of the body", n)
	}
	tabletest.Replays(t, engine, req, body)
}

// Nothing but its hash tells that a body which can't be compressed was altered.
func TestAlteredBodyDoesNotReplay(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	body := make([]byte, 9<<10)
	if _, err := rand.Read(body); err != nil {
		t.Fatal(err)
	}
	engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
	if _, err := engine.Do(t.Context(), req, tabletest.Created(string(body))); err != nil {
		t.Fatal(err)
	}
	for _, it := range tab.Items(t) {
		if b, ok := it["b"].(*types.AttributeValueMemberB); ok && it["st"] == nil {
			b.Value[100] ^= 1
			tab.Put(t, it)
		}
	}
	if _, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("a retry got %v, want not kept", err)
	}
}

// Companions are as patient as the record's own writes: a table that is
// throttled for longer than the client tries again doesn't lose the answer.
func TestCompanionsWaitOutAThrottle(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
		if op == "PutItem" && n > 1 && n < 15 { // the client gives up after 6
			return dynamotest.Throttle
		}
		return nil
	}
	engine, req, body := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}"), randomText(8<<10)
	if _, err := engine.Do(t.Context(), req, tabletest.Created(body)); err != nil {
		t.Fatal(err)
	}
	tabletest.Replays(t, engine, req, body)
}

// What has to wait for the table is told so: nothing was committed.
func TestFinishWithoutItsCompanionsIsUnavailable(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, tab *table) {
		tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
			if op == "PutItem" && n > 1 {
				return dynamotest.Throttle
			}
			return nil
		}
		req := tabletest.Post("", "{}")
		req.Header = http.Header{idem.KeyHeader: {tabletest.NewKey()}}
		res, err := tab.Engine(func(o *idem.Options) { o.Lease = 3 * time.Second }).Serve(t.Context(), req,
			func(ctx context.Context) (idem.Response, error) {
				return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) {
					return tabletest.Created(randomText(8 << 10))(ctx)
				})
			})
		if err != nil || res.Status != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("got %d, %.200s, %v", res.Status, res.Body, err)
		}
	})
}

// An operation with phases whose answer couldn't be written beside its record stays open:
// its next attempt stores the answer. Taken for done, with its status only, the client
// would never get its receipt (R150).
func TestAnswerWhoseBodyIsSlow(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	once := dynamodb.New(tab.Client.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	st, err := dynamo.New(once, tab.Name)
	if err != nil {
		t.Fatal(err)
	}
	clock := idemtest.NewClock()
	engine := idem.New(st, tabletest.Unhurried, func(o *idem.Options) { o.Now = clock.Now })
	req, body := tabletest.Post(tabletest.NewKey(), "{}"), randomText(8<<10)
	paid := func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "paid", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		return tabletest.Created(body)(ctx)
	}
	tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
		if op == "PutItem" && n > 1 { // the companions
			return dynamotest.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected")
		}
		return nil
	}
	if _, err := engine.Do(t.Context(), req, paid); !errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	tab.Transport.Fault = nil
	clock.Advance(time.Hour)
	if res, err := engine.Do(t.Context(), req, paid); err != nil || string(res.Body) != body {
		t.Errorf("the retry gets %d bytes, %v", len(res.Body), err)
	}
}

// However often a finish is tried, its body is written once.
func TestFinishTriedAgainWritesItsBodyOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"no answer, and not applied": dynamotest.LoseRequest,
		"no answer, but applied":     dynamotest.LoseAnswer,
		"refused":                    dynamotest.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected"),
		"a conflict":                 dynamotest.Conflict,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			once := dynamodb.New(tab.Client.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
			store, err := dynamo.New(once, tab.Name)
			if err != nil {
				t.Fatal(err)
			}
			times := 3
			if name == "refused" {
				times = 1 // then it is the status that is stored
			}
			tab.Transport.Fault = tabletest.On("UpdateItem", times, fault)
			engine := idem.New(store, callertest.Anybody, tabletest.Unhurried, func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })
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
	tab.Transport.Fault = tabletest.On("TransactWriteItems", 1, dynamotest.Conflict)
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
		fault func(op string, n int) dynamotest.Fault
		want  calls // for the answer and one replay
	}{
		"one call": {want: calls{"PutItem": 2, "BatchWriteItem": 1, "UpdateItem": 1, "BatchGetItem": 1}},
		"a part is left out, twice": {
			fault: func(op string, n int) dynamotest.Fault {
				if op == "BatchWriteItem" && n <= 2 {
					return firstOnly("RequestItems", "UnprocessedItems")
				}
				if op == "BatchGetItem" && n <= 2 {
					return firstOnly("RequestItems", "UnprocessedKeys")
				}
				return nil
			},
			want: calls{"PutItem": 2, "BatchWriteItem": 3, "UpdateItem": 1, "BatchGetItem": 3},
		},
		"not allowed": {
			fault: func(op string, _ int) dynamotest.Fault {
				if strings.HasPrefix(op, "Batch") {
					return dynamotest.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected")
				}
				return nil
			},
			want: calls{"PutItem": 2 + 4, "BatchWriteItem": 1, "UpdateItem": 1, "BatchGetItem": 1, "GetItem": 4},
		},
		"only reads are allowed, as by FunctionPolicy": {
			fault: func(op string, _ int) dynamotest.Fault {
				if op == "BatchWriteItem" {
					return dynamotest.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected")
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
			var meter store.Meter
			if _, err := engine.Do(store.WithMeter(t.Context(), &meter), req, tabletest.Created(body)); err != nil {
				t.Fatal(err)
			}
			if faults := meter.Cost().Faults; len(faults) > 0 {
				t.Errorf("calls are told as failed: %v", faults)
			}
			tabletest.Replays(t, engine, req, body)
			if diff := cmp.Diff(tt.want, tab.Transport.Calls()); diff != "" {
				t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
			}
		})
	}
}

// firstOnly is a throttled batch: of what is asked for, only the first is done.
func firstOnly(asked, left string) dynamotest.Fault {
	return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
		var in map[string]map[string]json.RawMessage
		if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
			return nil, err
		}
		rest := make(map[string]json.RawMessage)
		for table, raw := range in[asked] {
			var of struct {
				Keys           []json.RawMessage
				ConsistentRead bool
			}
			var items []json.RawMessage
			if json.Unmarshal(raw, &items) == nil {
				rest[table], _ = json.Marshal(items[1:])
				in[asked][table], _ = json.Marshal(items[:1])
				continue
			}
			if err := json.Unmarshal(raw, &of); err != nil {
				return nil, err
			}
			all := of.Keys
			of.Keys = all[1:]
			rest[table], _ = json.Marshal(of)
			of.Keys = all[:1]
			in[asked][table], _ = json.Marshal(of)
		}
		b, _ := json.Marshal(in)
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		resp, err := base.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		defer func() { _ = resp.Body.Close() }()
		var out map[string]json.RawMessage
		if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
			return nil, err
		}
		out[left], _ = json.Marshal(rest)
		b, _ = json.Marshal(out)
		resp.Header.Del("X-Amz-Crc32")
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		return resp, nil
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
