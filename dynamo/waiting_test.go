package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// spoken keeps the bodies of a store's requests, and adds up the units of its writes.
type spoken struct {
	*dynamodb.Client
	mu     sync.Mutex
	bodies strings.Builder
	index  float64
}

func (s *spoken) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := s.Client.UpdateItem(ctx, in, opts...)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, index := range out.ConsumedCapacity.GlobalSecondaryIndexes {
			s.index += aws.ToFloat64(index.CapacityUnits)
		}
	}
	return out, err
}

// hear returns a store whose requests and index units are kept.
func hear(t *testing.T, tab *table) (*dynamo.Store, *spoken) {
	t.Helper()
	s := &spoken{}
	s.Client = dynamodb.New(tab.Client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = listener{o.HTTPClient, s}
	})
	heard, err := dynamo.New(s, tab.Name)
	if err != nil {
		t.Fatal(err)
	}
	return heard, s
}

type listener struct {
	dynamodb.HTTPClient
	s *spoken
}

func (l listener) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	l.s.mu.Lock()
	l.s.bodies.Write(body)
	l.s.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	return l.HTTPClient.Do(r)
}

// A request that goes well doesn't know of the index: no write of it names one of the
// index's attributes, and it takes no unit of the index. The same goes for its replays,
// its failures and its take-overs. To be stuck takes one.
func TestOnlyWhatWaitsWritesTheIndex(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	heard, spoken := hear(t, tab)
	engine := idem.New(heard, callertest.Anybody, tabletest.Unhurried, func(o *idem.Options) { o.Function, o.Resumable, o.Retention = "f", true, defaults.Retention })
	req, down := tabletest.Post(tabletest.NewKey(), "{}"), errors.New("down")
	fails := true
	handler := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob("mail", 1))
			return 1, nil
		})
		if err == nil && fails {
			err = down
		}
		if err != nil {
			return idem.Response{}, err
		}
		return tabletest.Created("{}")(ctx)
	}
	for range 2 {
		if _, err := engine.Do(t.Context(), req, handler); !errors.Is(err, down) {
			t.Fatal(err)
		}
	}
	fails = false
	for range 2 {
		if _, err := engine.Do(t.Context(), req, handler); err != nil {
			t.Fatal(err)
		}
	}
	if said := spoken.bodies.String(); !strings.Contains(said, "lease_ms") || strings.Contains(said, "wait") {
		t.Errorf("requests that wait for nobody said: %s", said)
	}
	if spoken.index != 0 {
		t.Errorf("they took %v units of the index", spoken.index)
	}
	_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (int, error) { return 0, down }, idem.NotIdempotent())
		return idem.Response{}, err
	})
	if !errors.Is(err, idem.ErrStuck) || spoken.index != 1 {
		t.Errorf("stuck: %v; it took %v units of the index, want 1", err, spoken.index)
	}
}
