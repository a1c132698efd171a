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

	"github.com/samekey/samekey/internal/item"
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
	return &Waiting{s, "t", WaitingOptions{Only: []state.Reason{state.ReasonStuck}, After: after, Now: func() time.Time { return now }}}
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
	key := item.WaitKeys(state.ReasonStuck)[0]
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
	if other := s.read[item.WaitKeys(state.ReasonStuck)[1]]; len(other) != 1 {
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
	key := item.WaitKeys(state.ReasonStuck)[3]
	pages := map[string][][]item.Map{
		key: {{onShelf("a", now), onShelf("b", now.Add(1e6))}, {onShelf("c", now.Add(2e6))}}, item.WaitKeys(state.ReasonStuck)[4]: {{onShelf("d", now.Add(3e6))}},
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
