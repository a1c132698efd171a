package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

const fakeTable = "records"

// restless is a table in memory that others write to.
type restless struct {
	fakedynamo.DB
	before func() // each update; nil: nothing
	fails  error  // the answer to each update; nil: the table's own

	updates int
}

func (r *restless) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if r.updates++; r.before != nil {
		r.before()
	}
	if r.fails != nil {
		return nil, r.fails
	}
	return r.DB.UpdateItem(ctx, in, opts...)
}

// edit changes an item past all conditions.
func (r *restless) edit(t testing.TB, pk, update string, names map[string]string, values item.Map) {
	t.Helper()
	if _, err := r.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(fakeTable), Key: item.Key(pk), UpdateExpression: &update, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}); err != nil {
		t.Error(err)
	}
}

// open is the table's store, with a finished record that has jobs.
func (r *restless) open(t testing.TB, jobs map[string]store.Job) (*dynamo.Store, *store.Record) {
	t.Helper()
	s, err := dynamo.New(r, fakeTable)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Millisecond)
	rec := &store.Record{
		PK: "v1##finished", State: store.Done, Owner: "o", Ver: 2, ID: "i", Keep: store.KeepJobs, Until: now.Add(time.Hour).Truncate(time.Second),
		Response: &store.Response{Status: 201}, Jobs: jobs, Fingerprint: "f", Created: now, Run: now, Route: "POST /orders",
	}
	state.WaitFrom(rec, now)
	if held, err := s.Claim(t.Context(), store.Claim{Next: rec, Now: now}); err != nil || held != nil {
		t.Fatal(held, err)
	}
	r.updates = 0
	return s, rec
}

// now is what is left of a record: its jobs, those that are parked with a "!" behind them, and
// whether it is kept and waits for people; "gone" if there is none.
func (r *restless) now(t testing.TB, pk string) string {
	t.Helper()
	got, err := r.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(fakeTable), Key: item.Key(pk)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Item == nil {
		return "gone"
	}
	rec, err := item.Glance(got.Item)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(rec.Jobs)) {
		if rec.Jobs[name].Failed != "" {
			name += "!"
		}
		words = append(words, name)
	}
	if rec.Keep != "" {
		words = append(words, "kept")
	}
	if _, waits := got.Item[item.AttrWait]; waits {
		words = append(words, "waits")
	}
	return strings.Join(words, " ")
}

// meanwhile is what others do to a record before a write.
func (r *restless) meanwhile(t testing.TB, pk, what string) {
	t.Helper()
	var v item.Values
	verb, job, _ := strings.Cut(what, " ")
	name, path := map[string]string{"#j": job}, map[string]string{"#j": job, "#f": item.JobFailed}
	switch verb {
	case "":
	case "delete":
		if !r.Expire(fakeTable, pk) {
			t.Error("it is gone already")
		}
	case "anew":
		r.edit(t, pk, "SET id = :x", nil, item.Map{":x": v.Str("another")})
	case "add":
		r.edit(t, pk, "SET jobs.#j = :x", map[string]string{"#j": "1.0"}, item.Map{":x": v.Job("1.0", store.Job{Kind: "mail"})})
	case "replace":
		r.edit(t, pk, "SET jobs.#k = :x REMOVE jobs.#j", map[string]string{"#j": job, "#k": "1.0"}, item.Map{":x": v.Job("1.0", store.Job{Kind: "mail"})})
	case "break":
		r.edit(t, pk, "SET resp = :x", nil, item.Map{":x": v.Str("broken")})
	case "ver":
		r.edit(t, pk, "SET ver = ver + :one", nil, item.Map{":one": v.Num(1)})
	case "open":
		r.edit(t, pk, "SET st = :st, keep = :st, lease_ms = :l REMOVE resp", nil, item.Map{":st": v.Str("open"), ":l": v.Num(0)})
	case "endless":
		r.edit(t, pk, "REMOVE until_s", nil, nil)
	case "let-go":
		r.edit(t, pk, "SET jobs = :x, exp_s = until_s REMOVE keep, until_s", nil, item.Map{":x": v.Map(nil)})
	case "park":
		r.edit(t, pk, "SET jobs.#j.#f = :x", path, item.Map{":x": v.Str("bad")})
	case "unpark":
		r.edit(t, pk, "REMOVE jobs.#j.#f", path, nil)
	case "redrive":
		r.edit(t, pk, "REMOVE jobs.#j.#t", map[string]string{"#j": job, "#t": item.JobTries}, nil)
	case "ack":
		r.edit(t, pk, "REMOVE jobs.#j", name, nil)
	default:
		t.Fatalf("nobody can %q", what)
	}
}

var errForbidden error = &smithy.GenericAPIError{Code: "AccessDeniedException"}

var errBroken = errors.New("broken")

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

// glanced is a table that counts its reads, which may fail.
type glanced struct {
	restless
	broken bool
	reads  int
}

func (g *glanced) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if g.reads++; g.broken {
		return nil, errForbidden
	}
	return g.restless.GetItem(ctx, in, opts...)
}

// ticketList is a queue that refuses some tickets.
type ticketList struct {
	refuse func(jobs.Ticket) error // nil: none
	got    []jobs.Ticket
	calls  int
}

func (q *ticketList) Put(_ context.Context, all []jobs.Ticket) []error {
	q.calls++
	q.got = append(q.got, all...)
	errs := make([]error, len(all))
	for i, t := range all {
		if q.refuse != nil {
			errs[i] = q.refuse(t)
		}
	}
	return errs
}

// byKind is a sink that fails for some kinds.
func byKind(errs map[string]error, got *[]string) jobs.Sink {
	return jobs.SinkFunc(func(_ context.Context, d jobs.Delivery) error {
		*got = append(*got, d.Kind)
		return errs[d.Kind]
	})
}

// imaged is a stream record of an item, as it is now or was when it was removed.
func imaged(event string, it item.Map) events.DynamoDBEventRecord {
	image := streamimage.Of(it)
	rec := events.DynamoDBEventRecord{EventName: event, Change: events.DynamoDBStreamRecord{Keys: map[string]events.DynamoDBAttributeValue{"pk": image["pk"]}}}
	if event == "REMOVE" {
		rec.Change.OldImage = image
	} else {
		rec.Change.NewImage = image
	}
	return rec
}

// soundItem is a record as its table has it.
func soundItem(t *testing.T) item.Map {
	t.Helper()
	db := &restless{}
	_, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}})
	for _, it := range db.Items(fakeTable) {
		if item.PK(it) == rec.PK {
			return it
		}
	}
	t.Fatal("it isn't there")
	return nil
}

// version is a finished record as a stream record shows it: parked jobs have a "!" behind
// their names.
func version(id string, ver int64, jobs ...string) *store.Record {
	r := &store.Record{PK: "v1##" + id, ID: id, Ver: ver, State: store.Done, Keep: store.KeepJobs, Jobs: make(map[string]store.Job)}
	for _, name := range jobs {
		if n := len(name) - 1; name[n] == '!' {
			r.Jobs[name[:n]] = store.Job{Failed: "bad"}
		} else {
			r.Jobs[name] = store.Job{}
		}
	}
	return r
}
