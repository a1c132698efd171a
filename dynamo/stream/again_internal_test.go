package stream

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/item"
)

// poison is a table of one segment in which all work on every record fails.
type poison struct{ records int }

func (p poison) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	from := 0
	if after, ok := in.ExclusiveStartKey[item.AttrPK].(*types.AttributeValueMemberS); ok {
		from, _ = strconv.Atoi(after.Value)
	}
	out := &dynamodb.ScanOutput{}
	for n := from + 1; n <= min(from+int(*in.Limit), p.records); n++ {
		out.Items = append(out.Items, item.Key(fmt.Sprintf("%06d", n)))
	}
	if out.ScannedCount = int32(len(out.Items)); len(out.Items) > 0 {
		out.LastEvaluatedKey = out.Items[len(out.Items)-1]
	}
	return out, nil
}

// Where too much fails the pass waits for it to be mended, but not for ever: what
// has failed often enough makes way for what hasn't been tried.
func TestPassWaitsForATimeWhereTooMuchFails(t *testing.T) {
	t.Parallel()
	const page = 500
	table := poison{records: 3 * maxAgain}
	p := &pass{tried: make(map[string]int64)}
	p.begin(1, time.Now())
	tries := make(map[string]int)
	runs, waited := 0, 0
	for ; !p.whole(); runs++ {
		if runs > 3*giveWayAfter {
			t.Fatalf("the pass stands at %+v", p.at)
		}
		s := &scanner{api: table, segments: 1, pageSize: page, perSecond: 1e6}
		clear(p.tried)
		var again []string
		for _, f := range p.take(len(p.again)) {
			again = append(again, f.pk)
			tries[f.pk]++
		}
		p.stillLater(again)
		if err := s.each(t.Context(), time.Time{}, p, func(items []item.Map) bool {
			var pks []string
			for _, it := range items {
				pks = append(pks, item.PK(it))
				tries[item.PK(it)]++
			}
			return p.later(pks)
		}); err != nil {
			waited++
		}
		if len(p.again) > maxAgain {
			t.Fatalf("%d records wait", len(p.again))
		}
	}
	if len(tries) != table.records || waited == 0 {
		t.Errorf("%d runs saw %d of %d records, and %d waited", runs, len(tries), table.records, waited)
	}
	for pk, n := range tries {
		if n < 2 && pk < fmt.Sprintf("%06d", 2*maxAgain) {
			t.Errorf("%s was tried %d times", pk, n)
		}
	}
}

func TestRoomForWhatFails(t *testing.T) {
	t.Parallel()
	list := func(n int, runs int64) (l []failure) {
		for i := range n {
			l = append(l, failure{fmt.Sprintf("%d-%d", runs, i), runs})
		}
		return l
	}
	for name, tt := range map[string]struct {
		list []failure
		n    int
		left int
		ok   bool
	}{
		"nothing waits":                      {nil, maxAgain, 0, true},
		"as much as there is":                {list(maxAgain-5, 1), 5, maxAgain - 5, true},
		"one too many, and all are young":    {list(maxAgain-5, giveWayAfter-1), 6, maxAgain - 5, false},
		"one too many, and one is old":       {append(list(maxAgain-5, 1), list(1, giveWayAfter)...), 5, maxAgain - 5, true},
		"two too many, and one is old":       {append(list(maxAgain-5, 1), list(1, giveWayAfter)...), 6, maxAgain - 5, false},
		"no more make way than have to":      {list(maxAgain, giveWayAfter), 7, maxAgain - 7, true},
		"a list that two sweeps made longer": {list(maxAgain+9, giveWayAfter), 1, maxAgain - 1, true},
	} {
		left, ok := room(tt.list, tt.n)
		if ok != tt.ok || ok && len(left) != tt.left {
			t.Errorf("%s: %d are left, %v; want %d, %v", name, len(left), ok, tt.left, tt.ok)
		}
	}
}

// A page with more failures than can ever wait isn't waited for.
func TestPageWithTooManyFailures(t *testing.T) {
	t.Parallel()
	p := &pass{tried: make(map[string]int64)}
	pks := make([]string, maxAgain+1)
	for i := range pks {
		pks[i] = strconv.Itoa(i)
	}
	if !p.later(pks) || len(p.again) != maxAgain {
		t.Errorf("%d wait", len(p.again))
	}
}

// A run without time for all goes on with others than the one before.
func TestThoseThatFailedGoToTheEnd(t *testing.T) {
	t.Parallel()
	p := &pass{tried: make(map[string]int64), cursor: cursor{again: []failure{{"a", 1}, {"b", 2}, {"c", 1}}}}
	p.take(2)
	p.stillLater([]string{"b"})
	if got := fmt.Sprint(p.again); got != "[{c 1} {b 3}]" {
		t.Errorf("got %s", got)
	}
	if got := p.fresh([]item.Map{item.Key("a"), item.Key("b"), item.Key("c"), item.Key("d")}); len(got) != 2 || item.PK(got[0]) != "c" {
		t.Errorf("fresh are %v", got)
	}
	if half(time.Time{}) != (time.Time{}) {
		t.Error("half of for ever")
	}
	if left := time.Until(half(time.Now().Add(time.Hour))); left < 29*time.Minute || left > 31*time.Minute {
		t.Errorf("half of an hour is %v", left)
	}
}
