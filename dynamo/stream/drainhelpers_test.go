package stream_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/servers/mendstream"
	"github.com/samekey/samekey/internal/state"
)

// tail reads the stream of a table, as Lambda hands it to a function.
type tail struct {
	tab      *table
	client   *dynamodbstreams.Client
	arn      string
	iterator *string
	ahead    []types.Record // read, but written after the last event
}

// tail begins with the table's first record since the first tail.
func (tab *table) tail(t testing.TB) *tail {
	t.Helper()
	o := tab.Direct.Options()
	return &tail{tab: tab, arn: tab.Stream(t), client: dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint: aws.String(dynamotest.Start(t).Endpoint), Region: o.Region, Credentials: o.Credentials,
		HTTPClient: &http.Client{Transport: mendstream.Transport(nil)},
	})}
}

// event returns everything that was written since the last one: it writes an
// item that is not ours and reads up to it.
func (s *tail) event(t testing.TB) events.DynamoDBEvent {
	t.Helper()
	mark := "mark-" + rand.Text()
	s.tab.Put(t, map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: mark}})
	var ev events.DynamoDBEvent
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for {
		recs := slices.Concat(s.ahead, s.records(ctx, t))
		s.ahead = nil
		for i, r := range recs {
			pk := r.Dynamodb.Keys["pk"].(*types.AttributeValueMemberS).Value
			switch {
			case pk == mark:
				s.ahead = recs[i+1:] // others write at the same time
				return ev
			case len(pk) > 5 && pk[:5] == "mark-":
			default:
				ev.Records = append(ev.Records, decodeRecord(t, s.arn, r))
			}
		}
		if ctx.Err() != nil {
			t.Fatal("the stream doesn't show what was written")
		}
	}
}

// records reads on. DynamoDB Local forgets an iterator that was taken before the
// stream had any record.
func (s *tail) records(ctx context.Context, t testing.TB) []types.Record {
	t.Helper()
	if s.iterator == nil {
		d, err := s.client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &s.arn})
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.client.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &s.arn, ShardId: d.StreamDescription.Shards[0].ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.iterator = out.ShardIterator
	}
	out, err := s.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: s.iterator})
	if _, ok := errors.AsType[*types.TrimmedDataAccessException](err); ok {
		s.iterator = nil
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	s.iterator = out.NextShardIterator
	return out.Records
}

// decodeRecord goes by the JSON that Lambda sends.
func decodeRecord(t testing.TB, arn string, r types.Record) (rec events.DynamoDBEventRecord) {
	t.Helper()
	m := map[string]any{
		"eventID": r.EventID, "eventName": r.EventName, "eventSource": "aws:dynamodb", "eventSourceARN": arn, "awsRegion": "us-east-1",
		"dynamodb": map[string]any{
			"ApproximateCreationDateTime": r.Dynamodb.ApproximateCreationDateTime.Unix(),
			"Keys":                        streamItem(r.Dynamodb.Keys), "NewImage": streamItem(r.Dynamodb.NewImage),
			"OldImage": streamItem(r.Dynamodb.OldImage), "SequenceNumber": r.Dynamodb.SequenceNumber, "StreamViewType": r.Dynamodb.StreamViewType,
		},
	}
	if u := r.UserIdentity; u != nil {
		m["userIdentity"] = map[string]any{"type": u.Type, "principalId": u.PrincipalId}
	}
	b, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(b, &rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func streamItem(it map[string]types.AttributeValue) map[string]any {
	if it == nil {
		return nil
	}
	m := make(map[string]any, len(it))
	for name, v := range it {
		m[name] = streamValue(v)
	}
	return m
}

func streamValue(v types.AttributeValue) map[string]any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": streamItem(v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, el := range v.Value {
			list[i] = streamValue(el)
		}
		return map[string]any{"L": list}
	}
	panic("no such type in a record")
}

// outbox is a sink that remembers.
type outbox struct {
	fail func(jobs.Delivery) error // nil: never

	mu   sync.Mutex
	all  []jobs.Delivery
	byID map[string]int
}

func (o *outbox) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	return jobs.SinkFunc(func(_ context.Context, d jobs.Delivery) error {
		if o.fail != nil {
			if err := o.fail(d); err != nil {
				return err
			}
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.byID == nil {
			o.byID = make(map[string]int)
		}
		o.all = append(o.all, d)
		o.byID[d.JobID]++
		return nil
	}).Deliver(ctx, batch)
}

// kinds are the kinds of what was delivered, in order.
func (o *outbox) kinds() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	kinds := []string{}
	for _, d := range o.all {
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

// item reads a record's item as it is.
func (tab *table) item(t testing.TB, pk string) map[string]ddbtypes.AttributeValue {
	t.Helper()
	out, err := tab.Direct.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &tab.Name, Key: map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: pk}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// letGo fails the test unless a finished record expires at the end of its
// replay and is kept for nothing.
func (tab *table) letGo(t testing.TB, pk string) {
	t.Helper()
	it := tab.item(t, pk)
	if it["keep"] != nil || number(it["exp_s"]) == 0 || number(it["exp_s"]) != number(it["until_s"]) {
		t.Errorf("keep %v, exp_s %v, until_s %v: the record was not let go", it["keep"], number(it["exp_s"]), number(it["until_s"]))
	}
	if jobs := it["jobs"].(*ddbtypes.AttributeValueMemberM).Value; len(jobs) != 0 {
		t.Errorf("%d jobs are left", len(jobs))
	}
}

// kept fails the test unless a record is kept for its jobs.
func (tab *table) kept(t testing.TB, pk string, jobs ...string) {
	t.Helper()
	r, err := tab.Store.Load(t.Context(), pk)
	if err != nil || r == nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	if r.Keep != store.KeepJobs || !r.Expires.IsZero() {
		t.Errorf("keep %q, expires %v: the record isn't kept", r.Keep, r.Expires)
	}
	if len(r.Jobs) != len(jobs) {
		t.Errorf("%d jobs are there, want %d", len(r.Jobs), len(jobs))
	}
	for _, name := range jobs {
		if _, there := r.Jobs[name]; !there {
			t.Errorf("job %s is gone", name)
		}
	}
}

func number(v ddbtypes.AttributeValue) int64 {
	n, ok := v.(*ddbtypes.AttributeValueMemberN)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return -1
	}
	return i
}

// finished writes a record that is done and has jobs, as a finish leaves it.
func (tab *table) finished(t testing.TB, mod func(*store.Record), jobs ...string) *store.Record {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	r := &store.Record{
		PK: "v1##" + (rand.Text() + rand.Text())[:43], State: store.Done, Owner: rand.Text(), Ver: 2, ID: rand.Text(),
		Keep: store.KeepJobs, Until: now.Add(time.Hour).Truncate(time.Second), Response: &idem.Response{Status: 201, Body: []byte(tabletest.Planted)},
		Jobs: make(map[string]idem.Job), Fingerprint: "f", Created: now, Run: now, Route: "POST /orders",
	}
	for _, name := range jobs {
		r.Jobs[name] = idem.NewJob("job "+name, name+" "+tabletest.Planted)
	}
	if mod != nil {
		mod(r)
	}
	state.WaitFrom(r, now)
	if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: r, Now: now}); err != nil || held != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	tab.Transport.Reset()
	return r
}
