package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem"
)

// A large request is completed from its record, and no input is at rest after
// the answer.
func TestLargeStoredRequestIsResumedAndThenEmptied(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := idem.New(tab.store, func(o *idem.Options) { o.Resumable = true })
	req := post(newKey(), randomText(700<<10))
	down := true
	handler := func(ctx context.Context, in *idem.Request) (idem.Response, error) {
		if !bytes.Equal(in.Body, req.Body) || in.Path != req.Path || in.Route != req.Route {
			t.Errorf("the handler sees %s with %d bytes", in.Path, len(in.Body))
		}
		if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		if down {
			return idem.Response{}, errors.New("provider is down")
		}
		return idem.Response{Status: 201, Body: []byte("made")}, nil
	}
	if _, err := engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) { return handler(ctx, &req) }); err == nil {
		t.Fatal("no error")
	}
	ticket := func() idem.Ticket {
		for _, it := range tab.items(t) {
			if pk := it["pk"].(*types.AttributeValueMemberS).Value; strings.Count(pk, "#") == 2 {
				rec, err := tab.store.Load(t.Context(), pk)
				if err != nil {
					t.Fatal(err)
				}
				return idem.TicketFor(rec)
			}
		}
		t.Fatal("no record")
		return idem.Ticket{}
	}
	stale := ticket()
	down = false
	if _, err := engine.Resume(t.Context(), stale, handler); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Resume(t.Context(), stale, handler); !errors.Is(err, idem.ErrMoved) {
		t.Errorf("a ticket used twice: %v", err)
	}
	res, err := engine.Do(t.Context(), req, neverRuns(t))
	if err != nil || !res.Replayed || string(res.Body) != "made" {
		t.Errorf("%+v, %v", res, err)
	}
	for _, it := range tab.items(t) {
		if _, is := it["req"]; is {
			t.Error("the request is still in its record")
		}
		if _, is := it["st"]; is {
			continue
		}
		if _, is := it["b"]; is {
			t.Error("a part of the request is still beside its record")
		}
	}
}

// Only the owner of a lost companion is told, and nobody runs half a request.
func TestStoredRequestThatIsGoneGetsStuck(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := idem.New(tab.store, func(o *idem.Options) { o.Resumable = true })
	_, err := engine.Do(t.Context(), post(newKey(), randomText(10<<10)), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
		return idem.Response{}, errors.Join(err, errors.New("died"))
	})
	if err == nil {
		t.Fatal("no error")
	}
	var pk string
	for _, it := range tab.items(t) {
		if id := it["pk"].(*types.AttributeValueMemberS); it["st"] != nil {
			pk = id.Value
		} else {
			delete(it, "b")
			tab.put(t, it)
		}
	}
	rec, err := tab.store.Load(t.Context(), pk)
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.Resume(t.Context(), idem.TicketFor(rec), func(context.Context, *idem.Request) (idem.Response, error) {
		t.Error("ran without its request")
		return idem.Response{}, nil
	})
	if !errors.Is(err, idem.ErrStuck) {
		t.Errorf("got %v", err)
	}
}
