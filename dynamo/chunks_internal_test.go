package dynamo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

// parted is a table of companions. It notes each call, with the number of items, and
// answers it as script says: how many items of a batch are left out, and an error.
type parted struct {
	API
	items  map[string]item.Map
	calls  []string
	script func(call string, n int) (left int, err error)
}

func (p *parted) call(op string, size int) (left int, err error) {
	p.calls = append(p.calls, fmt.Sprint(op, " ", size))
	if p.script != nil {
		return p.script(op, len(p.calls))
	}
	return 0, nil
}

func (p *parted) BatchWriteItem(_ context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	todo := in.RequestItems["t"]
	left, err := p.call("BatchWrite", len(todo))
	if err != nil {
		return nil, err
	}
	for _, w := range todo[left:] {
		if w.DeleteRequest != nil {
			delete(p.items, item.PK(w.DeleteRequest.Key))
			continue
		}
		p.items[item.PK(w.PutRequest.Item)] = w.PutRequest.Item
	}
	out := &dynamodb.BatchWriteItemOutput{}
	if left > 0 {
		out.UnprocessedItems = map[string][]types.WriteRequest{"t": slices.Clone(todo[:left])}
	}
	return out, nil
}

func (p *parted) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if _, err := p.call("Put", 1); err != nil {
		return nil, err
	}
	p.items[item.PK(in.Item)] = in.Item
	return &dynamodb.PutItemOutput{}, nil
}

func (p *parted) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if _, err := p.call("Update", 1); err != nil {
		return nil, err
	}
	pk := item.PK(in.Key)
	if p.items[pk] == nil && aws.ToString(in.ConditionExpression) == "attribute_exists(pk)" {
		return nil, &types.ConditionalCheckFailedException{}
	}
	delete(p.items, pk)
	return &dynamodb.UpdateItemOutput{}, nil
}

func (p *parted) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	keys := in.RequestItems["t"].Keys
	left, err := p.call("BatchGet", len(keys))
	if err != nil {
		return nil, err
	}
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{}}
	for _, k := range keys[left:] {
		if it := p.items[item.PK(k)]; it != nil {
			out.Responses["t"] = append(out.Responses["t"], it)
		}
	}
	if left > 0 {
		out.UnprocessedKeys = map[string]types.KeysAndAttributes{"t": {Keys: slices.Clone(keys[:left])}}
	}
	return out, nil
}

func (p *parted) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if _, err := p.call("Get", 1); err != nil {
		return nil, err
	}
	return &dynamodb.GetItemOutput{Item: p.items[item.PK(in.Key)]}, nil
}

// partsOf returns a store with the companions of a body of count parts, of which missing are yet to
// be written.
func partsOf(count, missing int) (*Store, *parted, *store.Overflow, []byte) {
	p := &parted{items: make(map[string]item.Map)}
	body := bytes.Repeat([]byte("0123456789abcdef"), (count-1)*chunkSize/16+1)
	o := &store.Overflow{Owner: "o", First: 5, Count: count, Missing: missing, Length: len(body), SHA256: sha256.Sum256(body)}
	s := &Store{api: p, table: "t", inline: 1}
	for i := range count - missing {
		var v item.Values
		p.items[companionKey("pk", o, i)] = v.Companion(companionKey("pk", o, i), time.Now(), body[i*chunkSize:min((i+1)*chunkSize, len(body))])
	}
	return s, p, o, body
}

var (
	errDown    = errors.New("connection reset")
	errInvalid = &types.ResourceNotFoundException{}
)

// always answers each of these calls the same way.
func always(call string, left int, err error) func(string, int) (int, error) {
	return func(is string, _ int) (int, error) {
		if strings.HasPrefix(is, call) {
			return left, err
		}
		return 0, nil
	}
}

// Parts are written eight at once and until their time is over. What is written counts: the
// next try writes the rest, under the same numbers.
func TestPartsAreWritten(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		count, missing int
		script         func(string, int) (int, error)
		left           int // missing after it
		err            error
		calls          []string
	}{
		"one":             {count: 1, missing: 1, calls: []string{"Put 1"}},
		"eight":           {count: 8, missing: 8, calls: []string{"BatchWrite 8"}},
		"seventeen":       {count: 17, missing: 17, calls: []string{"BatchWrite 8", "BatchWrite 8", "Put 1"}},
		"the rest":        {count: 17, missing: 3, calls: []string{"BatchWrite 3"}},
		"nothing":         {count: 17, missing: 0},
		"throttled":       {count: 3, missing: 3, script: always("BatchWrite", 2, nil), calls: []string{"BatchWrite 3", "BatchWrite 2"}, left: 3, err: idem.ErrUnavailable},
		"down":            {count: 3, missing: 3, script: always("BatchWrite", 0, errDown), calls: []string{"BatchWrite 3", "BatchWrite 3"}, left: 3, err: idem.ErrUnavailable},
		"one, down":       {count: 1, missing: 1, script: always("Put", 0, errDown), calls: []string{"Put 1", "Put 1"}, left: 1, err: idem.ErrUnavailable},
		"no table":        {count: 3, missing: 3, script: always("BatchWrite", 0, errInvalid), calls: []string{"BatchWrite 3"}, left: 3, err: errInvalid},
		"batches denied":  {count: 9, missing: 9, script: always("BatchWrite", 0, &deniedError{}), calls: slices.Concat([]string{"BatchWrite 8"}, slices.Repeat([]string{"Put 1"}, 9))},
		"no table, later": {count: 9, missing: 9, script: always("Put", 0, errInvalid), calls: []string{"BatchWrite 8", "Put 1"}, left: 1, err: errInvalid},
		"left out, once":  {count: 3, missing: 3, script: func(_ string, n int) (int, error) { return max(3-n, 0), nil }, calls: []string{"BatchWrite 3", "BatchWrite 2", "Put 1"}},
		"a lost answer":   {count: 3, missing: 3, script: func(_ string, n int) (int, error) { return 0, map[int]error{1: errDown}[n] }, calls: []string{"BatchWrite 3", "BatchWrite 3"}},
		"one by one, down once": {count: 8, missing: 8, script: func(_ string, n int) (int, error) {
			return 0, map[int]error{1: &deniedError{}, 4: errDown}[n]
		}, calls: slices.Concat([]string{"BatchWrite 8"}, slices.Repeat([]string{"Put 1"}, 9))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, p, o, body := partsOf(tt.count, tt.missing)
				p.script = tt.script
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := s.putChunks(ctx, "pk", o, body, time.Now().Add(time.Hour), nil)
				if name == "throttled" && !errors.Is(err, errThrottled) {
					t.Errorf("%v, want the reason", err)
				}
				calls := p.calls
				if errors.Is(tt.err, idem.ErrUnavailable) && len(calls) > len(tt.calls) { // more of the same
					calls = calls[:len(tt.calls)]
				}
				if diff := cmp.Diff(tt.calls, calls); diff != "" || o.Missing != tt.left || (err == nil) != (tt.err == nil) || !errors.Is(err, tt.err) || errors.Is(err, store.ErrUnknown) {
					t.Errorf("%v, %d missing; calls (-want +got):\n%s", err, o.Missing, diff)
				}
				if err != nil {
					return
				}
				if got, err := s.readBody(ctx, &store.Record{PK: "pk"}, o); err != nil || !bytes.Equal(got, body) || len(p.items) != tt.count {
					t.Errorf("%d bytes of %d in %d items, %v", len(got), len(body), len(p.items), err)
				}
			})
		})
	}
}

// Parts are read eight at once, and a part of a batch that is left out is asked for again,
// up to six times. The last one needs no batch.
func TestPartsAreRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		count  int
		script func(string, int) (int, error)
		err    error
		calls  []string
	}{
		"one":             {count: 1, calls: []string{"Get 1"}},
		"eight":           {count: 8, calls: []string{"BatchGet 8"}},
		"ten":             {count: 10, calls: []string{"BatchGet 8", "BatchGet 2"}},
		"one is left out": {count: 3, script: always("BatchGet", 1, nil), calls: []string{"BatchGet 3", "Get 1"}},
		"two are":         {count: 3, script: always("BatchGet", 2, nil), err: errThrottled, calls: slices.Concat([]string{"BatchGet 3"}, slices.Repeat([]string{"BatchGet 2"}, 5))},
		"batches denied":  {count: 3, script: always("BatchGet", 0, &deniedError{}), calls: []string{"BatchGet 3", "Get 1", "Get 1", "Get 1"}},
		"denied, of ten":  {count: 10, script: always("BatchGet", 0, &deniedError{}), calls: slices.Concat([]string{"BatchGet 8"}, slices.Repeat([]string{"Get 1"}, 10))},
		"no table":        {count: 3, script: always("BatchGet", 0, errInvalid), err: errInvalid, calls: []string{"BatchGet 3"}},
		"one, no table":   {count: 1, script: always("Get", 0, errInvalid), err: errInvalid, calls: []string{"Get 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, p, o, body := partsOf(tt.count, 0)
				p.script = tt.script
				got, err := s.readBody(t.Context(), &store.Record{PK: "pk"}, o)
				if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || err == nil && !bytes.Equal(got, body) {
					t.Errorf("%d bytes of %d, %v", len(got), len(body), err)
				}
				if diff := cmp.Diff(tt.calls, p.calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Parts that nobody refers to are removed, 25 at once, or emptied one by one. An item that
// TTL has deleted meanwhile does not come back.
func TestPartsAreRemoved(t *testing.T) {
	t.Parallel()
	emptied := func(n int) []string { return slices.Repeat([]string{"Update 1"}, n) }
	for name, tt := range map[string]struct {
		count  int
		script func(string, int) (int, error)
		left   int // items
		failed bool
		calls  []string
	}{
		"one":            {count: 1, calls: emptied(1)},
		"25":             {count: 25, calls: []string{"BatchWrite 25"}},
		"26":             {count: 26, calls: append([]string{"BatchWrite 25"}, emptied(1)...)},
		"80":             {count: 80, calls: []string{"BatchWrite 25", "BatchWrite 25", "BatchWrite 25", "BatchWrite 5"}},
		"left out, once": {count: 30, script: func(_ string, n int) (int, error) { return map[int]int{1: 3}[n], nil }, calls: []string{"BatchWrite 25", "BatchWrite 8"}},
		"left out":       {count: 9, script: always("BatchWrite", 2, nil), calls: []string{"BatchWrite 9", "BatchWrite 2", "BatchWrite 2"}, left: 2, failed: true},
		"denied":         {count: 3, script: always("BatchWrite", 0, &deniedError{}), calls: append([]string{"BatchWrite 3"}, emptied(3)...)},
		"denied before":  {count: 3, calls: emptied(3)},
		"down":           {count: 3, script: always("BatchWrite", 0, errDown), calls: []string{"BatchWrite 3"}, left: 3, failed: true},
		"one by one, down": {count: 3, script: func(call string, n int) (int, error) {
			return 0, map[int]error{1: &deniedError{}, 3: errDown}[n]
		}, calls: append([]string{"BatchWrite 3"}, emptied(2)...), left: 2, failed: true},
		"gone before": {count: 3, script: func(call string, n int) (int, error) {
			switch n {
			case 1:
				return 0, &deniedError{}
			case 2:
				return 0, &types.ConditionalCheckFailedException{}
			}
			return 0, nil
		}, calls: append([]string{"BatchWrite 3"}, emptied(3)...), left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, p, o, _ := partsOf(tt.count, 0)
				p.script = tt.script
				s.noBatches.writes.Store(name == "denied before")
				if err := s.dropChunks(t.Context(), "pk", o); (err != nil) != tt.failed || len(p.items) != tt.left {
					t.Errorf("%v, %d items are left", err, len(p.items))
				}
				if diff := cmp.Diff(tt.calls, p.calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A body over the limit is refused before anything is written: no reader would accept it.
func TestBodyThatNoReaderAccepts(t *testing.T) {
	t.Parallel()
	for size, fits := range map[int]bool{item.MaxStored: true, item.MaxStored + 1: false} {
		s, p, _, _ := partsOf(1, 0)
		p.items = make(map[string]item.Map)
		body := make([]byte, size)
		next := &store.Record{PK: "pk", Owner: "o", Ver: 1, ID: "i", State: store.Done, Response: &store.Response{Status: 200, Body: body}}
		if _, err := s.Claim(t.Context(), store.Claim{Next: next, Now: time.Now()}); (err == nil) != fits || !fits && (!errors.Is(err, store.ErrTooLarge) || len(p.calls) > 0) {
			t.Errorf("an answer of %d bytes: %v after %v", size, err, p.calls)
		}
		p.calls = nil
		next = &store.Record{PK: "pk", Owner: "o", Ver: 1, ID: "i", State: store.Open, Input: &store.Input{Body: body}}
		if _, err := s.Claim(t.Context(), store.Claim{Next: next, Now: time.Now()}); (err == nil) != fits || !fits && (!errors.Is(err, store.ErrTooLarge) || len(p.calls) > 0) {
			t.Errorf("a request of %d bytes: %v after %v", size, err, p.calls)
		}
	}
}

// A commit tends the parts of the request that it replaces: what nobody refers to any more
// goes, and what a client's retry brings again is written, if it is the same. While that is
// not known, all stays.
func TestPartsOfARequestAfterACommit(t *testing.T) {
	t.Parallel()
	const pk = "pk"
	_, _, over, body := partsOf(2, 0)
	record := func(owner string, ver int64, in *store.Input) *store.Record {
		return &store.Record{PK: pk, Owner: owner, Ver: ver, ID: "i", State: store.Open, Keep: store.KeepOpen, Input: in}
	}
	stored := func(body []byte) *store.Input {
		o := *over
		return &store.Input{Method: "POST", Path: "/", Body: body, Overflow: &o}
	}
	inline := &store.Input{Method: "POST", Path: "/", Body: []byte("x")}
	elsewhere := stored(nil)
	elsewhere.Overflow.First++
	anothers := stored(nil)
	anothers.Overflow.Owner = "other"
	prev := record("a", 1, stored(nil))
	done, supplied := record("a", 2, nil), record("b", 2, stored(body))
	unknown := errors.Join(store.ErrUnknown, errDown)
	for name, tt := range map[string]struct {
		next, held *store.Record
		err        error
		now        *store.Record // in the table
		want       string        // of the parts: "stay", "go", "come"
		taken      bool          // the outcome is known now: it is the record in the table
	}{
		"it ends":                            {next: done, want: "go"},
		"an operator ends it":                {next: record("b", 2, nil), want: "go"},
		"it goes on":                         {next: record("a", 2, stored(nil)), want: "stay"},
		"it goes on, as far as is known":     {next: record("a", 2, stored(nil)), err: errDown, want: "stay"},
		"it goes on, with the request":       {next: supplied, want: "come"},
		"with the request, known before":     {next: supplied, want: "stay"}, // see below
		"refused, the record has the parts":  {next: done, held: record("c", 3, stored(nil)), want: "stay"},
		"refused, the record has none":       {next: done, held: record("c", 3, nil), want: "go"},
		"refused, it has its request within": {next: done, held: record("c", 3, inline), want: "go"},
		"refused, it has parts elsewhere":    {next: done, held: record("c", 3, elsewhere), want: "go"},
		"refused, it has another's":          {next: done, held: record("c", 3, anothers), want: "go"},
		"with the request, lost to another":  {next: supplied, held: record("c", 3, stored(nil)), want: "stay"},
		"with the request, applied before":   {next: supplied, held: record("b", 2, stored(nil)), want: "come"},
		"with the request, within by now":    {next: supplied, held: record("b", 2, inline), want: "stay"},
		"with another request":               {next: record("b", 2, stored([]byte("another"))), want: "stay"},
		"an error":                           {next: done, err: errDown, want: "stay"},
		"unknown, not applied":               {next: done, err: unknown, now: prev, want: "stay"},
		"unknown, gone":                      {next: done, err: unknown, want: "stay"},
		"unknown, applied":                   {next: done, err: unknown, now: record("a", 2, nil), want: "go", taken: true},
		"unknown, taken over":                {next: done, err: unknown, now: record("c", 1, stored(nil)), want: "stay", taken: true},
		"unknown, with the request":          {next: supplied, err: unknown, now: record("b", 2, stored(nil)), want: "come", taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p, _, _ := partsOf(2, 0)
			c := store.Commit{Prev: record("a", 1, stored(nil)), Next: tt.next}
			if name == "with the request, known before" {
				c.Prev.Input.Body = body
			}
			if tt.want == "come" {
				p.items = make(map[string]item.Map)
			}
			if tt.now != nil {
				var v item.Values
				it := v.Encode(tt.now, nil)
				if in := tt.now.Input; in != nil {
					it[item.AttrRequest] = v.Input(in, in.Overflow, nil, false)
				}
				p.items[pk] = it
			}
			held, err := s.tendInput(t.Context(), c, tt.held, tt.err)
			delete(p.items, pk)
			if tt.want == "stay" && slices.ContainsFunc(p.calls, func(call string) bool { return call != "Get 1" }) {
				t.Errorf("calls %v, want no write", p.calls)
			}
			if got := map[int]string{0: "go", 2: map[bool]string{true: "come", false: "stay"}[tt.want == "come"]}[len(p.items)]; got != tt.want {
				t.Errorf("the parts %s, want that they %s; calls %v", got, tt.want, p.calls)
			}
			switch {
			case tt.taken:
				if err != nil || held == nil || held.Owner != tt.now.Owner || held.Ver != tt.now.Ver {
					t.Errorf("%+v, %v, want the record in the table", held, err)
				}
			case held != tt.held || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil):
				t.Errorf("%+v, %v, want what the commit got", held, err)
			}
			if tt.want != "come" {
				return
			}
			if got, err := s.readBody(t.Context(), &store.Record{PK: pk}, over); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes of %d, %v", len(got), len(body), err)
			}
		})
	}
}
