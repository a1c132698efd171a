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

// However much fails, a pass comes to its end; what there is no room for is tried by the
// next pass.
func TestPassIsHeldUpByNoFailures(t *testing.T) {
	t.Parallel()
	p := &pass{tried: make(map[string]int64)}
	p.begin(1, time.Now())
	seen := 0
	s := &scanner{api: poison{records: 3 * maxAgain}, segments: 1, pageSize: 500, perSecond: 1e6}
	if err := s.each(t.Context(), time.Time{}, p, func(items []item.Map) (tally, bool) {
		pks := make([]string, len(items))
		for i, it := range items {
			pks[i] = item.PK(it)
		}
		seen += len(items)
		p.later(pks)
		return tally{}, true
	}); err != nil || !p.whole() || seen != 3*maxAgain || len(p.again) != maxAgain {
		t.Errorf("%d seen, %d wait, at %+v: %v", seen, len(p.again), p.at, err)
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
		list  []failure
		n     int
		old   int // that are left
		fresh int
	}{
		"nothing waits":                      {nil, maxAgain, 0, maxAgain},
		"as much as there is":                {list(maxAgain-5, 1), 5, maxAgain - 5, 5},
		"one too many, and all are young":    {list(maxAgain-5, giveWayAfter-1), 6, maxAgain - 5, 5},
		"one too many, and one is old":       {append(list(maxAgain-5, 1), list(1, giveWayAfter)...), 5, maxAgain - 5, 5},
		"two too many, and one is old":       {append(list(maxAgain-5, 1), list(1, giveWayAfter)...), 6, maxAgain - 5, 5},
		"no more make way than have to":      {list(maxAgain, giveWayAfter), 7, maxAgain - 7, 7},
		"a list that two sweeps made longer": {list(maxAgain+9, giveWayAfter), 1, maxAgain - 1, 1},
		"a longer list of young ones":        {list(maxAgain+9, 1), 1, maxAgain + 9, 0},
	} {
		p := &pass{cursor: cursor{again: tt.list}}
		pks := make([]string, tt.n)
		for i := range pks {
			pks[i] = "new"
		}
		p.later(pks)
		fresh := 0
		for _, f := range p.again {
			if f.pk == "new" && f.runs == 1 {
				fresh++
			}
		}
		if old := len(p.again) - fresh; old != tt.old || fresh != tt.fresh {
			t.Errorf("%s: %d old and %d new wait; want %d and %d", name, old, fresh, tt.old, tt.fresh)
		}
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
	if got, tried := p.part([]item.Map{item.Key("a"), item.Key("b"), item.Key("c"), item.Key("d")}); len(got) != 2 || item.PK(got[0]) != "c" || len(tried) != 2 {
		t.Errorf("fresh are %v, tried %v", got, tried)
	}
	if half(time.Time{}) != (time.Time{}) {
		t.Error("half of for ever")
	}
	if left := time.Until(half(time.Now().Add(time.Hour))); left < 29*time.Minute || left > 31*time.Minute {
		t.Errorf("half of an hour is %v", left)
	}
}
