package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// shelf is an index in memory: the pages of each partition.
type shelf struct {
	pages map[string][][]item.Map
	fails error // from the second page of a partition on
	first error
	of    string // only this partition has the error; "": all

	mu    sync.Mutex
	read  map[string][]string // how the pages of a partition were asked for
	since map[string]bool     // what was asked for last: a condition, and the time in it
}

func (s *shelf) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := in.ExpressionAttributeValues[":wait"].(*types.AttributeValueMemberS).Value
	n := len(s.read[key])
	how := fmt.Sprint(aws.ToInt32(in.Limit), " ", aws.ToString(in.ProjectionExpression), in.Select)
	if s.read == nil {
		s.read = make(map[string][]string)
	}
	s.since = map[string]bool{aws.ToString(in.KeyConditionExpression): true}
	if n, ok := in.ExpressionAttributeValues[":since"].(*types.AttributeValueMemberN); ok {
		s.since[n.Value] = true
	}
	if s.read[key] = append(s.read[key], how); s.first != nil && (s.of == "" || s.of == key) {
		return nil, s.first
	}
	if n > 0 && s.fails != nil {
		return nil, s.fails
	}
	out := &dynamodb.QueryOutput{}
	if n < len(s.pages[key]) {
		out.Items, out.Count = s.pages[key][n], int32(len(s.pages[key][n]))
	}
	if n+1 < len(s.pages[key]) {
		out.LastEvaluatedKey = item.Key(fmt.Sprint(n))
	}
	return out, nil
}

// listed is the list of a shelf, whose time is now.
func listed(s *shelf, now time.Time, after Entry) *Waiting {
	return &Waiting{s, "t", WaitingOptions{Only: []Reason{ReasonStuck}, After: after, Now: func() time.Time { return now }}}
}

func onShelf(pk string, since time.Time) item.Map {
	var v item.Values
	return item.Map{"pk": v.Str(pk), item.AttrSince: v.Millis(since)}
}

// The pages of a list grow, and entries of one time come in the order of their keys, on
// whatever pages they are.
func TestPagesOfAList(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000)
	key := item.WaitKeys(ReasonStuck)[0]
	s := &shelf{pages: map[string][][]item.Map{key: {
		{onShelf("g", now)}, {onShelf("c", now)}, {}, {onShelf("a", now)}, {onShelf("b", now)}, {onShelf("e", now), onShelf("d", now.Add(1e6))}, {onShelf("f", now.Add(2e6))},
	}}}
	want := []string{"a", "b", "c", "e", "g", "d", "f"}
	for i, after := range []Entry{{}, {Since: now, PK: "c"}, {Since: now.Add(1e6), PK: "d"}} {
		s.read = nil
		var got []string
		for e, err := range listed(s, now, after).All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.PK)
		}
		if !slices.Equal(got, want[[]int{0, 3, 6}[i]:]) {
			t.Errorf("after %q: %q", after.PK, got)
		}
		asked := map[string]bool{"waits = :wait": true}
		if i > 0 {
			asked = map[string]bool{"waits = :wait AND wait_ms >= :since": true, fmt.Sprint(after.Since.UnixMilli()): true}
		}
		if diff := cmp.Diff(asked, s.since); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", after.PK, diff)
		}
	}
	if got, want := s.read[key], []string{"25 ", "100 ", "400 ", "1600 ", "2000 ", "2000 ", "2000 "}; !slices.Equal(got, want) {
		t.Errorf("read as %q, want %q", got, want)
	}
	if other := s.read[item.WaitKeys(ReasonStuck)[1]]; len(other) != 1 {
		t.Errorf("an empty partition is read as %q", other)
	}
	n := 0
	s.read = nil
	for _, err := range listed(s, now, Entry{}).All(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("the list goes on to %d", n)
	}
}

// A list and a count end with the first error of a read.
func TestListEndsWithAnError(t *testing.T) {
	t.Parallel()
	now := time.Now()
	key := item.WaitKeys(ReasonStuck)[3]
	pages := map[string][][]item.Map{
		key: {{onShelf("a", now), onShelf("b", now.Add(1e6))}, {onShelf("c", now.Add(2e6))}}, item.WaitKeys(ReasonStuck)[4]: {{onShelf("d", now.Add(3e6))}},
	}
	noIndex := &smithy.GenericAPIError{Code: "ValidationException", Message: "The table does not have the specified index: waiting"}
	for name, tt := range map[string]struct {
		s     *shelf
		want  error
		shown int
	}{
		"at once":   {&shelf{pages: pages, first: errForbidden}, errForbidden, 0},
		"in part":   {&shelf{pages: pages, first: errForbidden, of: key}, errForbidden, 0},
		"then":      {&shelf{pages: pages, fails: errForbidden}, errForbidden, 1},
		"no index":  {&shelf{pages: pages, first: noIndex}, ErrNoIndex, 0},
		"no errors": {&shelf{pages: pages}, nil, 4},
	} {
		shown, errs := 0, 0
		for _, err := range listed(tt.s, now, Entry{}).All(t.Context()) {
			if err == nil {
				shown++
			} else if errs++; !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", name, err, tt.want)
			}
		}
		if shown != tt.shown || (errs == 1) != (tt.want != nil) || errs > 1 {
			t.Errorf("%s: %d are shown, and %d errors", name, shown, errs)
		}
		tt.s.read = nil
		if c, err := listed(tt.s, now, Entry{}).Count(t.Context()); !errors.Is(err, tt.want) || (err == nil) == (c == nil) {
			t.Errorf("%s: counted %+v, %v", name, c, err)
		}
	}
}

// A count asks for the time of the oldest, and then for numbers only.
func TestCountOfAPartition(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000)
	keys := item.WaitKeys(ReasonStuck)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	s := &shelf{pages: map[string][][]item.Map{
		keys[0]: {{}, {onShelf("a", ago(90*time.Second+1e6)), onShelf("b", ago(time.Second))}, {onShelf("c", now)}}, keys[1]: {{onShelf("d", ago(-time.Hour))}}, keys[2]: {{onShelf("e", ago(time.Minute))}},
	}}
	got, err := listed(s, now, Entry{}).Count(t.Context())
	want := &Counted{Count: 5, Oldest: 90, ByReason: map[Reason]Tally{ReasonStuck: {5, 90}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if got, want := s.read[keys[0]], []string{"25 wait_ms", "25 wait_ms", "0 COUNT"}; !slices.Equal(got, want) {
		t.Errorf("read as %q, want %q", got, want)
	}
	ahead := &shelf{pages: map[string][][]item.Map{keys[0]: {{onShelf("d", ago(-time.Hour))}}}}
	if got, err := listed(ahead, now, Entry{}).Count(t.Context()); err != nil || got.Count != 1 || got.Oldest != 0 {
		t.Errorf("by a clock that is ahead: %+v, %v", got, err)
	}
}

// An entry shows what its item has: the job's tries and error before the operation's, and the
// item that it is about before its own.
func TestEntryOfTheIndex(t *testing.T) {
	t.Parallel()
	var v item.Values
	created, run := time.UnixMilli(1_800_000_000_000), time.UnixMilli(1_800_000_001_000)
	it := item.Map{"pk": v.Str("v1##a"), item.AttrTries: v.Num(3), item.AttrLastErr: v.Str("down"), item.AttrCreated: v.Millis(created), item.AttrID: v.Str("i")}
	e := indexed(ReasonStuck, it)
	if e.PK != "v1##a" || e.Tries != 3 || e.LastErr != "down" || !e.Created.Equal(created) || !e.Run.Equal(created) || e.ID != "i" || e.Reason != ReasonStuck {
		t.Errorf("an operation: %+v", e)
	}
	it[item.AttrRun], it[item.AttrAbout] = v.Millis(run), v.Str("v1##b")
	it[item.AttrWaitIn] = v.WaitIn(state.Wait{Job: "0.0", Kind: "mail", Failed: "bad", Tries: 5, Phase: "p"})
	e = indexed(ReasonParked, it)
	if e.PK != "v1##b" || e.Tries != 5 || e.LastErr != "bad" || !e.Run.Equal(run) || e.Job != "0.0" || e.Kind != "mail" || e.Phase != "p" {
		t.Errorf("a job: %+v", e)
	}
	it[item.AttrWaitIn] = v.WaitIn(state.Wait{Phase: "p"})
	if e := indexed(ReasonStuck, it); e.Tries != 3 || e.LastErr != "down" || e.Phase != "p" {
		t.Errorf("a phase: %+v", e)
	}
	if e := indexed(ReasonStuck, item.Map{"pk": v.Str("v1##a"), item.AttrID: v.Num(1), item.AttrTries: v.Str("?"), item.AttrCreated: v.Str("?"), item.AttrWaitIn: v.Str("?")}); e.PK != "v1##a" || e.ID != "" || e.Tries != 0 {
		t.Errorf("one that is broken: %+v", e)
	}
}
