package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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

// A pass that another sweep has ended reads no further page.
func TestLostPassReadsNoFurther(t *testing.T) {
	t.Parallel()
	p := &pass{tried: make(map[string]int64)}
	p.begin(1, time.Now())
	s := &scanner{api: poison{records: 3}, segments: 1, pageSize: 1, perSecond: 1e6}
	if err := s.each(t.Context(), time.Time{}, p, func([]item.Map) (tally, bool) { p.lost = true; return tally{}, true }); err != nil || s.pages != 1 || s.scanned != 1 {
		t.Errorf("%d pages with %d items: %v", s.pages, s.scanned, err)
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

// patients are the items that a run reads again, by their partition keys.
type patients struct {
	item.Access
	broken, gone string
	eventual     int // reads
}

func (a *patients) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if !aws.ToBool(in.ConsistentRead) {
		a.eventual++
	}
	switch item.PK(in.Key) {
	case a.broken:
		return nil, errBroken
	case a.gone:
		return &dynamodb.GetItemOutput{}, nil
	}
	return &dynamodb.GetItemOutput{Item: in.Key}, nil
}

var errBroken = errors.New("broken")

// What failed before is read again, a batch at a time, and worked on as far as it is there.
// A record that can't be read waits on, behind the others, and the run tells of it.
func TestFailedRecordsAreReadAgain(t *testing.T) {
	t.Parallel()
	p := &pass{tried: make(map[string]int64)}
	for i := range againBatch + 1 {
		p.again = append(p.again, failure{strconv.Itoa(i), 1})
	}
	access := &patients{broken: "0", gone: "1"}
	var seen []int
	err := (&Sweep{jobs: jobWriter{item.Table{Access: access}}}).again(t.Context(), time.Now().Add(time.Hour), p, func(items []item.Map) []string {
		seen = append(seen, len(items))
		if len(seen) == 1 {
			return []string{item.PK(items[0])}
		}
		return nil
	})
	if !errors.Is(err, errBroken) || !slices.Equal(seen, []int{againBatch - 2, 1}) || access.eventual != 0 {
		t.Errorf("saw %v after %d eventual reads: %v", seen, access.eventual, err)
	}
	if want := []failure{{"0", 2}, {"2", 2}}; !slices.Equal(p.again, want) {
		t.Errorf("%v wait, want %v", p.again, want)
	}
}

// Without time nothing is read again.
func TestFailedRecordsWaitForTime(t *testing.T) {
	t.Parallel()
	p := &pass{tried: make(map[string]int64), cursor: cursor{again: []failure{{"a", 1}}}}
	none := func([]item.Map) []string { t.Error("somebody worked on it"); return nil }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"the end has come":    (&Sweep{}).again(t.Context(), time.Now().Add(-time.Second), p, none),
		"the context is over": (&Sweep{}).again(ended, time.Time{}, p, none),
	} {
		if err != nil || !slices.Equal(p.again, []failure{{"a", 1}}) {
			t.Errorf("%s: %v wait: %v", name, p.again, err)
		}
	}
}

// What failed with another sweep is tried by the next run, unless this one has tried it since.
func TestFailuresOfAnotherSweep(t *testing.T) {
	t.Parallel()
	p := &pass{tried: map[string]int64{"done": 1, "again": 1}, cursor: cursor{again: []failure{{"own", 1}, {"again", 2}}}}
	got := p.joinAgain([]failure{{"own", 7}, {"done", 7}, {"again", 7}, {"theirs", 7}})
	if want := []failure{{"own", 1}, {"again", 2}, {"theirs", 7}}; !slices.Equal(got, want) {
		t.Errorf("%v wait, want %v", got, want)
	}
}
