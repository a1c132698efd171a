package simulation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// feed is the table's stream: shards that know nothing of each other, and an event
// source mapping.
type feed struct {
	w      *world
	shards [2]shard
	of     map[string]*shard // by key, for good
	n      int
}

type shard struct {
	records  []events.DynamoDBEventRecord
	busy     bool // a batch is under way, or waits for its window
	attempts int
}

// changed is told of every change of an item.
func (s *feed) changed(c fakedynamo.Change, byTTL bool) {
	if c.Table != records {
		return
	}
	it := c.New
	if it == nil {
		it = c.Old
	}
	pk := pkOf(it)
	s.n++
	rec := streamimage.Record(c.Old, c.New, c.Time.Truncate(time.Second), fmt.Sprintf("%021d", s.n))
	if c.New == nil && byTTL {
		rec.UserIdentity = streamimage.ByTTL()
	}
	sh := s.of[pk]
	if sh == nil {
		sh = &s.shards[s.w.rng.IntN(len(s.shards))]
		s.of[pk] = sh
	}
	sh.records = append(sh.records, rec)
	s.pump(sh)
}

// pump has the next batch of a shard delivered, after its window.
func (s *feed) pump(sh *shard) {
	w := s.w
	if sh.busy || len(sh.records) == 0 {
		return
	}
	sh.busy = true
	window := w.between(50*time.Millisecond, 1500*time.Millisecond)
	switch {
	case w.fires(streamLate, 0.01):
		window = w.between(time.Minute, 20*time.Minute)
	case w.fires(streamMixed, 0.02):
		window = w.between(5*time.Second, time.Minute)
	}
	if sh.attempts > 0 {
		window = min(time.Second<<min(sh.attempts, 6), time.Minute)
	}
	w.after(window, func() { s.deliver(sh) })
}

func (s *feed) deliver(sh *shard) {
	w := s.w
	n := min(len(sh.records), 1+w.rng.IntN(25))
	if w.fires(streamLost, 0.004) {
		w.note("stream", "%d records are lost", n)
		s.on(sh, n)
		return
	}
	batch := append([]events.DynamoDBEventRecord(nil), sh.records[:n]...)
	if w.fires(streamPoison, 0.02) {
		at := w.rng.IntN(n + 1)
		poison := batch[0]
		poison.EventName = "MODIFY"
		poison.Change.OldImage = nil
		poison.Change.NewImage = streamimage.Of(fakedynamo.Item{
			"pk": &types.AttributeValueMemberS{Value: "v1##poison"}, "v": &types.AttributeValueMemberN{Value: "1"},
			"st": &types.AttributeValueMemberS{Value: "never heard of"},
		})
		if w.likely(0.5) {
			poison.Change.NewImage = nil
		}
		poison.Change.Keys = map[string]events.DynamoDBAttributeValue{"pk": events.NewStringAttribute("v1##poison")}
		poison.Change.SequenceNumber = batch[min(at, n-1)].Change.SequenceNumber
		batch = append(batch[:at:at], append([]events.DynamoDBEventRecord{poison}, batch[at:]...)...)
	}
	w.note("stream", "%d records", len(batch))
	w.fleet.invoke(workerFunction, payload{stream: &events.DynamoDBEvent{Records: batch}}, func(out []byte, err error) { s.done(sh, n, out, err) })
}

func (s *feed) done(sh *shard, n int, out []byte, err error) {
	w := s.w
	var re events.DynamoDBEventResponse
	if err == nil {
		err = json.Unmarshal(out, &re)
	}
	switch {
	case err != nil, w.fires(streamAgain, 0.03):
		sh.attempts++
		s.on(sh, 0)
		return
	case len(re.BatchItemFailures) > 0:
		w.counts[streamPartial]++
		first := re.BatchItemFailures[0].ItemIdentifier
		for i := range n {
			if sh.records[i].Change.SequenceNumber == first {
				n = i
				break
			}
		}
		sh.attempts++
		s.on(sh, n)
		return
	}
	sh.attempts = 0
	s.on(sh, n)
}

// on goes on behind the next n records.
func (s *feed) on(sh *shard, n int) {
	s.w.progress()
	sh.records = sh.records[n:]
	sh.busy = false
	s.pump(sh)
}

func (s *feed) empty() bool { return len(s.shards[0].records) == 0 && len(s.shards[1].records) == 0 }
