package dynamo_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

const reply = `{"id":"order-1","amount":2000,"currency":"usd","customer":"cus_123","state":"paid"}`

// BenchmarkNew is claim and finish of a new request, three ways: the library
// alone, with the SDK over a stub transport, and what the SDK takes for the
// same two calls without the library. The difference of the last two is the
// library's share.
func BenchmarkNew(b *testing.B) {
	b.Run("library", func(b *testing.B) { benchDo(b, newStore(b, stubAPI{})) })
	b.Run("sdk", func(b *testing.B) { benchDo(b, newStore(b, stubClient(b, "{}", http.StatusOK))) })
	b.Run("floor", func(b *testing.B) {
		var seen recordingAPI
		store := newStore(b, &seen)
		if _, err := idem.New(store).Do(deadline(b), tabletest.Post("key", "{}"), tabletest.Created(reply)); err != nil {
			b.Fatal(err)
		}
		client := stubClient(b, "{}", http.StatusOK)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.PutItem(b.Context(), seen.put); err != nil {
				b.Fatal(err)
			}
			if _, err := client.UpdateItem(b.Context(), seen.update); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReplay is a replay: one refused claim that returns the record.
func BenchmarkReplay(b *testing.B) {
	var seen recordingAPI
	store := newStore(b, &seen)
	memory := &idem.MemoryStore{}
	if _, err := idem.New(memory).Do(deadline(b), tabletest.Post("key", "{}"), tabletest.Created(reply)); err != nil {
		b.Fatal(err)
	}
	if _, err := idem.New(store).Do(deadline(b), tabletest.Post("key", "{}"), tabletest.Created(reply)); err != nil {
		b.Fatal(err)
	}
	done := seen.finished(b)
	refusal := &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed"), Item: done}

	b.Run("library", func(b *testing.B) { benchReplay(b, idem.New(newStore(b, stubAPI{refusal: refusal}))) })
	b.Run("sdk", func(b *testing.B) {
		benchReplay(b, idem.New(newStore(b, stubClient(b, wire(done), http.StatusBadRequest))))
	})
	b.Run("floor", func(b *testing.B) {
		client := stubClient(b, wire(done), http.StatusBadRequest)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.PutItem(b.Context(), seen.put); err == nil {
				b.Fatal("not refused")
			}
		}
	})
	b.Run("cached", func(b *testing.B) {
		engine := idem.New(newStore(b, stubAPI{refusal: refusal}), func(o *idem.Options) { o.CacheBytes = 1 << 20 })
		benchReplay(b, engine)
	})
}

func benchDo(b *testing.B, store store.Store) {
	b.Helper()
	engine, ctx, req := idem.New(store), deadline(b), tabletest.Post("key", "{}")
	answer, _ := tabletest.Created(reply)(ctx)
	fn := func(context.Context) (idem.Response, error) { return answer, nil } // costs nothing itself
	b.ReportAllocs()
	for b.Loop() {
		if res, err := engine.Do(ctx, req, fn); err != nil || res.Replayed {
			b.Fatal(err)
		}
	}
}

func benchReplay(b *testing.B, engine *idem.Engine) {
	b.Helper()
	ctx, req := deadline(b), tabletest.Post("key", "{}")
	b.ReportAllocs()
	for b.Loop() {
		if res, err := engine.Do(ctx, req, nil); err != nil || !res.Replayed {
			b.Fatalf("%+v %v", res, err)
		}
	}
}

func deadline(b *testing.B) context.Context {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	b.Cleanup(cancel)
	return ctx
}

func newStore(b *testing.B, api dynamo.API) *dynamo.Store {
	b.Helper()
	store, err := dynamo.New(api, "bench")
	if err != nil {
		b.Fatal(err)
	}
	return store
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

// recordingAPI remembers what it was sent.
type recordingAPI struct {
	dynamo.API
	put    *dynamodb.PutItemInput
	update *dynamodb.UpdateItemInput
}

func (r *recordingAPI) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	r.put = in
	return &dynamodb.PutItemOutput{}, nil
}

func (r *recordingAPI) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.update = in
	return &dynamodb.UpdateItemOutput{}, nil
}

// finished is the item as the two writes leave it.
func (r *recordingAPI) finished(b *testing.B) map[string]types.AttributeValue {
	b.Helper()
	item := r.put.Item
	set, _, _ := strings.Cut(strings.TrimPrefix(*r.update.UpdateExpression, "SET "), " REMOVE ")
	for assignment := range strings.SplitSeq(set, ", ") {
		name, placeholder, ok := strings.Cut(assignment, " = ")
		if !ok {
			b.Fatalf("can't read %q", assignment)
		}
		item[name] = r.update.ExpressionAttributeValues[placeholder]
	}
	return item
}

// stubClient is a real client whose requests go nowhere.
func stubClient(b *testing.B, body string, status int) *dynamodb.Client {
	b.Helper()
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	}, dynamo.Tune, func(o *dynamodb.Options) {
		o.HTTPClient = stubTransport{body: body, status: status}
		o.DisableValidateResponseChecksum = true
	})
}

type stubTransport struct {
	body   string
	status int
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
