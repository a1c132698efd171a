package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// BenchmarkRequests are a new request and its replay over a transport that answers at once, and the
// same calls by the SDK alone.
func BenchmarkRequests(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	fresh, again, err := stubPairs(ctx, recorded(b))
	if err != nil {
		b.Fatal(err)
	}
	for _, one := range []struct {
		name string
		do   op
	}{
		{"new/library", fresh.library},
		{"new/same", fresh.same},
		{"replay/library", again.library},
		{"replay/same", again.same},
	} {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := one.do(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// op is something that is timed; i is the number of its run.
type op func(i int) error

// pair is a request, and the same calls sent by the SDK alone.
type pair struct{ library, same op }

// stubPairs are a new request and its replay over a stub transport; done is the record that is replayed.
func stubPairs(ctx context.Context, done item) (fresh, again pair, _ error) {
	refused, err := refusal(done)
	if err != nil {
		return fresh, again, err
	}
	taken, refuses := stubClient(200, "{}"), stubClient(400, refused)
	rec := &recorder{API: taken}
	once, err := doOn(ctx, rec, answerSize, false, plain)
	if err == nil {
		err = once(0)
	}
	if err != nil {
		return fresh, again, err
	}
	fresh.same = func(int) error {
		if _, err := taken.PutItem(ctx, rec.put); err != nil {
			return err
		}
		_, err := taken.UpdateItem(ctx, rec.update)
		return err
	}
	again.same = func(int) error {
		_, err := refuses.PutItem(ctx, rec.put)
		if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
			return nil
		}
		return fmt.Errorf("a write that must be refused: %w", err)
	}
	if fresh.library, err = doOn(ctx, stubClient(200, "{}", dynamo.Tune), answerSize, false, plain); err == nil {
		again.library, err = doOn(ctx, stubClient(400, refused, dynamo.Tune), answerSize, true, plain)
	}
	return fresh, again, err
}

// doOn is the same request again and again, on a store over api.
func doOn(ctx context.Context, api dynamo.API, size int, replay bool, opt func(*idem.Options)) (op, error) {
	s, err := dynamo.New(api, "bench")
	if err != nil {
		return nil, err
	}
	engine, req, fn := idem.New(s, opt, func(o *idem.Options) { o.Function = "rides" }), request(), creates(order(size))
	return func(int) error {
		res, err := engine.Do(ctx, req, fn)
		if err == nil && res.Replayed != replay {
			err = fmt.Errorf("replayed: %t", res.Replayed)
		}
		return err
	}, nil
}

// oneItem is a table with one item, whose writes it takes.
type oneItem struct {
	dynamo.API
	item item
}

func (m *oneItem) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	m.item = maps.Clone(in.Item)
	return nil, nil
}

func (m *oneItem) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	list, removed, _ := strings.Cut(strings.TrimPrefix(*in.UpdateExpression, "SET "), " REMOVE ")
	for one := range strings.SplitSeq(list, ", ") {
		if name, placeholder, ok := strings.Cut(one, " = "); ok {
			m.item[name] = in.ExpressionAttributeValues[placeholder]
		}
	}
	for name := range strings.SplitSeq(removed, ", ") {
		delete(m.item, name)
	}
	return nil, nil
}

// recorded is the item of a request that has just run.
func recorded(tb testing.TB) item {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Hour)
	defer cancel()
	table := new(oneItem)
	do, err := doOn(ctx, table, answerSize, false, plain)
	if err == nil {
		err = do(0)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return table.item
}

// A request's allocations don't grow: new and replay on a stub, as on the page.
func TestAllocations(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	refused := stubAPI{refusal: &types.ConditionalCheckFailedException{Item: recorded(t)}}
	for _, kind := range []struct {
		does string
		most int
		api  dynamo.API
		opt  func(*idem.Options)
	}{
		{"new", 45, stubAPI{}, plain},
		{"replay", 20, refused, plain}, // the stored fingerprint becomes hex again
	} {
		do, err := doOn(ctx, kind.api, 300, kind.does != "new", kind.opt)
		if err != nil {
			t.Fatal(err)
		}
		objects, bytes, err := allocated(500, do)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d allocations of %d bytes", kind.does, objects, bytes)
		if raceDetector {
			objects-- // a request has one more under the race detector
		}
		if objects > kind.most {
			t.Errorf("%s: %d allocations, want at most %d", kind.does, objects, kind.most)
		}
	}
}

// Nor do those over the SDK's own for the same calls: Tune adds a few, and no buffers.
func TestAllocationsOverTheSDK(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	fresh, again, err := stubPairs(ctx, recorded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct {
		does                   string
		pair                   pair
		mostObjects, mostBytes int
	}{{"new", fresh, 47, 10_000}, {"replay", again, 2, 5300}} {
		var objects, bytes [2]int
		for i, do := range []op{kind.pair.library, kind.pair.same} {
			if objects[i], bytes[i], err = allocated(500, do); err != nil {
				t.Fatal(err)
			}
		}
		moreObjects, moreBytes := objects[0]-objects[1], bytes[0]-bytes[1]
		t.Logf("%s: %d allocations of %d bytes more than the SDK's %d of %d", kind.does, moreObjects, moreBytes, objects[1], bytes[1])
		if !raceDetector && (moreObjects > kind.mostObjects || moreBytes > kind.mostBytes) {
			t.Errorf("%s: %d allocations of %d bytes over the SDK's, want at most %d of %d", kind.does, moreObjects, moreBytes, kind.mostObjects, kind.mostBytes)
		}
	}
}

// allocated returns how many objects and bytes a run allocates. Nothing else may run.
func allocated(runs int, do op) (objects, bytes int, _ error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for i := range runs { // pools fill
		if err := do(i); err != nil {
			return 0, 0, err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range runs {
		if err := do(runs + i); err != nil {
			return 0, 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return int(after.Mallocs-before.Mallocs) / runs, int(after.TotalAlloc-before.TotalAlloc) / runs, nil
}

// stubAPI takes every write, or refuses every claim.
type stubAPI struct {
	dynamo.API
	refusal error
}

func (s stubAPI) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return nil, s.refusal
}

func (s stubAPI) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, nil
}

// recorder remembers the writes that it passes on.
type recorder struct {
	dynamo.API
	put    *dynamodb.PutItemInput
	update *dynamodb.UpdateItemInput
}

func (r *recorder) PutItem(ctx context.Context, in *dynamodb.PutItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	r.put = in
	return r.API.PutItem(ctx, in, optFns...)
}

func (r *recorder) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.update = in
	return r.API.UpdateItem(ctx, in, optFns...)
}

// stubClient is a real client whose requests go nowhere: each gets the same answer.
func stubClient(status int, body string, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	}, append(optFns, func(o *dynamodb.Options) {
		o.HTTPClient = stubTransport{status, body}
		o.DisableValidateResponseChecksum = true
	})...)
}

type stubTransport struct {
	status int
	body   string
}

func (s stubTransport) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return &http.Response{
		Status: strconv.Itoa(s.status), StatusCode: s.status, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:          io.NopCloser(strings.NewReader(s.body)),
		ContentLength: int64(len(s.body)),
	}, nil
}

// refusal is the service's answer to a write that the item it has refused.
func refusal(it item) (string, error) {
	b, err := json.Marshal(map[string]any{
		"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "The conditional request failed", "Item": streamimage.Of(it),
	})
	return string(b), err
}
