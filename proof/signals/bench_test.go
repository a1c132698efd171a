package signals_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda/metrics"
)

// What hooks cost the library: a new request and a replay, with a table that answers at
// once.
func BenchmarkSignals(b *testing.B) {
	logger := slog.New(slog.NewJSONHandler(io.Discard, nil))
	for _, signals := range []struct {
		name  string
		hooks idem.Hooks
	}{
		{"off", idem.Hooks{}},
		{"metrics", metrics.New(io.Discard, "bench").Hooks()},
		{"logs", idem.Log(logger)},
		{"both", idem.Join(metrics.New(io.Discard, "bench").Hooks(), idem.Log(logger))},
	} {
		b.Run("new/"+signals.name, func(b *testing.B) { benchmark(b, instant{}, signals.hooks, false) })
		b.Run("replay/"+signals.name, func(b *testing.B) {
			done := &finished{}
			engineOf(b, done, idem.Hooks{}).run(b, false)
			done.refuse = &types.ConditionalCheckFailedException{Item: done.item}
			benchmark(b, done, signals.hooks, true)
		})
	}
}

type benched struct {
	*idem.Engine
	ctx context.Context
}

func engineOf(b *testing.B, api dynamo.API, hooks idem.Hooks) benched {
	b.Helper()
	store, err := dynamo.New(api, "bench")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	b.Cleanup(cancel)
	return benched{idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Hooks = hooks }), ctx}
}

func (e benched) run(b *testing.B, replayed bool) {
	b.Helper()
	r := idem.Request{
		Method: "POST", Path: "/orders", Route: route, Identity: idem.Identity{Subject: "jane"}, Key: "key", Body: []byte("{}"),
	}
	res, err := e.Do(e.ctx, r, answers)
	if err != nil || res.Replayed != replayed {
		b.Fatalf("%+v, %v", res, err)
	}
}

var answer = idem.Response{Status: 201, Body: []byte(`{"id":"order-1"}`)}

func answers(context.Context) (idem.Response, error) { return answer, nil }

func benchmark(b *testing.B, api dynamo.API, hooks idem.Hooks, replayed bool) {
	b.Helper()
	e := engineOf(b, api, hooks)
	b.ReportAllocs()
	for b.Loop() {
		e.run(b, replayed)
	}
}

// instant is a table that takes every write.
type instant struct{ dynamo.API }

func (instant) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return nil, nil
}

func (instant) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, nil
}

// finished is a table with one finished record: the item of a claim, with the values of
// the finish.
type finished struct {
	dynamo.API
	item   map[string]types.AttributeValue
	refuse error
}

func (f *finished) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if f.refuse == nil {
		f.item = in.Item
	}
	return nil, f.refuse
}

func (f *finished) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	for name, placeholder := range assignments(*in.UpdateExpression) {
		f.item[name] = in.ExpressionAttributeValues[placeholder]
	}
	return nil, nil
}

// assignments returns the attributes that an update sets, with the placeholders of their
// values.
func assignments(update string) map[string]string {
	sets := make(map[string]string)
	list, _, _ := strings.Cut(strings.TrimPrefix(update, "SET "), " REMOVE ")
	for one := range strings.SplitSeq(list, ", ") {
		if name, placeholder, ok := strings.Cut(one, " = "); ok {
			sets[name] = placeholder
		}
	}
	return sets
}
