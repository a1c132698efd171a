package main

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
)

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
//
//nolint:paralleltest // it counts this process's allocations
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
//
//nolint:paralleltest // it counts this process's allocations
func TestAllocationsOverTheSDK(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	fresh, again, err := stubTrios(ctx, recorded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct {
		does                   string
		trio                   trio
		mostObjects, mostBytes int
	}{{"new", fresh, 47, 10_000}, {"replay", again, 2, 5300}} {
		var objects, bytes [2]int
		for i, do := range []op{kind.trio.library, kind.trio.same} {
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
