package dynamo_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
)

// Bad input 21, A33: bodies of every size come back byte for byte, and cost
// what they should.
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
		{149, false, 0},
		{150, false, 0},
		{4 * kib, true, 0},
		{4*kib + 1, true, 1},
		{64 * kib, false, 0},
		{390 * kib, true, 1},
		{399 * kib, true, 2},
		{401 * kib, true, 2},
		{900 * kib, true, 3},
		{1 << 20, true, 3},
		{6 << 20, true, 16},
		{6 << 20, false, 1},
	} {
		t.Run(fmt.Sprintf("%d bytes, random=%t", tt.size, tt.random), func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			// Sixteen items of 390 KB may take a slow machine longer than the default lease.
			engine := tab.Engine(func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })
			body := bytes.Repeat([]byte{'a'}, tt.size)
			if tt.random {
				_, _ = rand.Read(body)
			}
			answer := func(context.Context) (idem.Response, error) {
				return idem.Response{Status: http.StatusOK, Body: body}, nil
			}
			req := tabletest.Post(tabletest.NewKey(), "{}")
			if res, err := engine.Do(t.Context(), req, answer); err != nil || !bytes.Equal(res.Body, body) {
				t.Fatalf("first answer has %d bytes, %v", len(res.Body), err)
			}
			if n := len(tab.Items(t)) - 1; n != tt.companions {
				t.Errorf("%d companions, want %d", n, tt.companions)
			}
			want := (tt.companions + 7) / 8 // eight at once, for the memory of a small function
			if c := tab.Transport.Calls(); c["PutItem"]-1+c["BatchWriteItem"] != want {
				t.Errorf("calls %v, want %d for the body", c, want)
			}
			res, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t))
			if err != nil || !res.Replayed || !bytes.Equal(res.Body, body) {
				t.Errorf("replay has %d bytes, %v", len(res.Body), err)
			}
			if c := tab.Transport.Calls(); c["GetItem"]+c["BatchGetItem"] != want {
				t.Errorf("calls %v, want %d reads of the body", c, want)
			}
		})
	}
}

// Over the limit: the status is kept, and a retry is told so instead of run.
func TestBodyOverTheLimitIsNotRunAgain(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
	body := randomText(defaults.MaxBody + 1)
	if res, err := engine.Do(t.Context(), req, tabletest.Created(body)); err != nil || string(res.Body) != body {
		t.Fatalf("got %d bytes, %v", len(res.Body), err)
	}
	if n := len(tab.Items(t)); n != 1 {
		t.Errorf("%d items, want the record only", n)
	}
	if _, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("a retry got %v, want not kept", err)
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
			if _, err := engine.Do(t.Context(), req, tabletest.Created(randomText(9<<10))); err != nil {
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

// A companion's key holds the owner's nonce: a worker that lost its lease and
// finishes late can't touch the winner's body.
func TestLateWorkerCantTouchTheWinnersBody(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	req := tabletest.Post(tabletest.NewKey(), "{}")
	winner, loser := randomText(30<<10), randomText(30<<10)
	res, err := tab.Engine().Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		later := tab.Engine(tabletest.Ahead(1 << 40))
		if _, err := later.Do(context.WithoutCancel(t.Context()), req, tabletest.Created(winner)); err != nil {
			t.Error(err)
		}
		return tabletest.Created(loser)(ctx)
	})
	if err != nil || !res.Replayed || string(res.Body) != winner {
		t.Errorf("the late worker was answered with %d bytes, replayed=%t, %v; want the winner's", len(res.Body), res.Replayed, err)
	}
	tabletest.Replays(t, tab.Engine(), req, winner)
}

// What this program doesn't know of stays: a later version's attributes survive
// every write of ours.
func TestUnknownAttributesStay(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	req := tabletest.Post(tabletest.NewKey(), "{}")
	_, err := tab.Engine().Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		it := tab.Items(t)[0]
		it["newer"] = &types.AttributeValueMemberS{Value: "kept"}
		tab.Put(t, it)
		return tabletest.Created("{}")(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := tab.Items(t)[0]["newer"].(*types.AttributeValueMemberS); !ok || v.Value != "kept" {
		t.Error("an unknown attribute is gone after the finish")
	}
}

// TTL deletes by exp_s alone: companions must outlive their record.
func TestCompanionsOutliveTheirRecord(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	if _, err := tab.Engine().Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), tabletest.Created(randomText(9<<10))); err != nil {
		t.Fatal(err)
	}
	var record, companion string
	for _, it := range tab.Items(t) {
		exp := it["exp_s"].(*types.AttributeValueMemberN).Value
		if _, ok := it["st"]; ok {
			record = exp
		} else if companion = exp; !strings.Contains(it["pk"].(*types.AttributeValueMemberS).Value, "#") {
			t.Error("companion's key has no owner in it")
		}
	}
	if record == "" || companion <= record {
		t.Errorf("record expires at %s, companion at %s", record, companion)
	}
}

// Headers can make an answer too large as well: done, and never run again.
func TestHugeHeaderIsNotRunAgain(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
	if _, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Header: http.Header{"Link": {strings.Repeat("x", 401<<10)}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("a retry got %v, want not kept", err)
	}
}

// A header value is bytes, not always UTF-8.
func TestLatin1HeaderReplays(t *testing.T) {
	t.Parallel()
	const name = "attachment; filename=\"caf\xe9.pdf\""
	tab := newTable(t)
	engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
	for range 2 {
		res, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) {
			return idem.Response{Header: http.Header{"Content-Disposition": {name}}}, nil
		})
		if got := res.Header.Get("Content-Disposition"); err != nil || got != name {
			t.Errorf("got %q, %v", got, err)
		}
	}
}
