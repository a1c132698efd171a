package model

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// On a table, a trace has the real drain and the real sweep too. One of them works at
// a time, as in the model. Each of its deliveries and writes waits for its turn, and
// may fail, lose its answer, or be the last of its process.

// table is a table with one record, and the record's stream.
type table struct {
	api interface {
		dynamo.API
		stream.ScanAPI
	}
	name   string
	item   map[string]types.AttributeValue // the record as last seen
	stream []events.DynamoDBEventRecord
	ops    []string          // the operation of each stream record
	staged map[string]staged // by the job's id
}

// staged is a job that was in the record.
type staged struct {
	op   string
	jobs Jobs
}

func (tab *table) store(t *testing.T, api dynamo.API) *dynamo.Store {
	t.Helper()
	s, err := dynamo.New(api, tab.name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// length is how many choices a trace has.
func (t *trace) length() int {
	if t.table == nil {
		return 60
	}
	return 120
}

// seen adds a change of the record to its stream.
func (t *trace) seen() {
	tab := t.table
	if tab == nil || t.pks[0] == "" {
		return
	}
	out, err := tab.api.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: &tab.name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: t.pks[0]}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.t.Fatal(err)
	}
	if out.Item == nil || reflect.DeepEqual(out.Item, tab.item) {
		return
	}
	rec := events.DynamoDBEventRecord{EventSource: "aws:dynamodb", EventName: "MODIFY"}
	if tab.item == nil {
		rec.EventName = "INSERT"
	}
	rec.Change = events.DynamoDBStreamRecord{
		Keys:     streamimage.Of(map[string]types.AttributeValue{"pk": out.Item["pk"]}),
		OldImage: streamimage.Of(tab.item), NewImage: streamimage.Of(out.Item), SequenceNumber: strconv.Itoa(len(tab.stream)),
	}
	tab.item = out.Item
	op := out.Item["id"].(*types.AttributeValueMemberS).Value
	tab.stream, tab.ops = append(tab.stream, rec), append(tab.ops, op)
	if all, ok := out.Item["jobs"].(*types.AttributeValueMemberM); ok {
		for name := range all.Value {
			is := Late
			if strings.HasPrefix(name, "0.") && t.config.Jobs&Early != 0 {
				is = Early
			}
			tab.staged[state.JobID(op, name)] = staged{op, is}
		}
	}
}

// function is a run of the drain or of the sweep.
type function struct {
	t       *trace
	name    string
	calls   chan *call
	answers chan reply
	pending *call // nil: the run is over
	dead    bool
	failed  bool // something went wrong: the work may be left to another run
}

// call is a write of a function, or a delivery.
type call struct {
	write *dynamodb.UpdateItemInput
	jobs  []jobs.Delivery
}

type reply struct {
	out  *dynamodb.UpdateItemOutput
	errs []error
}

var errNet = errors.New("connection reset by peer")

func (f *function) ask(k *call) reply {
	if f.dead {
		return reply{errs: fails(max(1, len(k.jobs)))}
	}
	f.calls <- k
	return <-f.answers
}

func fails(n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = errNet
	}
	return errs
}

// Deliver implements jobs.Sink.
func (f *function) Deliver(_ context.Context, batch []jobs.Delivery) []error {
	if f.t.fault != nil && f.t.fault.sink != nil {
		return f.t.fault.sink(f, batch)
	}
	return f.ask(&call{jobs: batch}).errs
}

// link is a function's way to the table.
type link struct {
	dynamo.API
	f *function
}

func (l link) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if pk, ok := in.Key["pk"].(*types.AttributeValueMemberS); !ok || pk.Value != l.f.t.pks[0] { // the sweep's own progress
		return l.API.UpdateItem(ctx, in)
	}
	r := l.f.ask(&call{write: in})
	if len(r.errs) > 0 {
		return nil, r.errs[0]
	}
	return r.out, nil
}

// drainOrSweep lets a function take its next step, or begins one.
func (t *trace) drainOrSweep() {
	switch f := t.running; {
	case f == nil:
		t.begins()
	case f.pending.jobs != nil:
		t.delivers(f, f.pending.jobs)
	default:
		t.amends(f, f.pending)
	}
}

// begins starts a drain with some part of the stream, however old, or a sweep.
func (t *trace) begins() {
	tab := t.table
	if len(tab.stream) == 0 {
		return
	}
	f := &function{t: t, name: "drain", calls: make(chan *call), answers: make(chan reply)}
	s := tab.store(t.t, link{tab.api, f})
	quiet := slog.New(slog.DiscardHandler)
	drain := stream.NewDrain(s, f, func(o *stream.DrainOptions) { o.MaxTries, o.Logger = 2, quiet })
	from := t.rnd.IntN(len(tab.stream))
	to := from + 1
	for most := t.rnd.IntN(4); most > 0 && to < len(tab.stream) && tab.ops[to] == tab.ops[from]; most-- {
		to++
	}
	run := func() { _, _ = drain.Handle(context.Background(), events.DynamoDBEvent{Records: tab.stream[from:to]}) }
	if t.rnd.IntN(3) == 0 {
		now := t.now.Add(time.Duration(t.rnd.IntN(2)) * time.Hour)
		sweep := stream.NewSweep(tab.api, s, func(o *stream.SweepOptions) {
			o.Drain, o.Logger, o.Now, o.Segments, o.PagesPerSecond = drain, quiet, func() time.Time { return now }, 1, 1e6
		})
		f.name = "sweep"
		run = func() { _, _ = sweep.Run(context.Background()) }
	}
	t.running = f
	go func() {
		defer close(f.calls)
		run()
	}()
	t.fired[f.name+" begins"]++
	t.next(f)
}

// next waits for a function's next call. A run that ends by itself, with nothing gone
// wrong, has acknowledged what it delivered.
func (t *trace) next(f *function) {
	if f.pending = <-f.calls; f.pending != nil {
		return
	}
	t.running = nil
	ac := t.accept
	worlds := make(map[world]bool)
	for w := range ac.worlds {
		if w.Drain.Step != idle && !f.failed {
			continue
		}
		w.Drain = drain{}
		worlds[w] = true
	}
	ac.worlds = worlds
	t.fired[f.name+" ends"]++
	t.note("the %s ends, failed %t", f.name, f.failed)
}

func (t *trace) replies(f *function, r reply) {
	f.answers <- r
	t.next(f)
}

// stops kills a function.
func (f *function) stops() {
	f.dead, f.failed = true, true
	f.t.replies(f, reply{errs: fails(max(1, len(f.pending.jobs)))})
}

// delivers carries out a delivery: the jobs must be committed ones, under their ids.
func (t *trace) delivers(f *function, batch []jobs.Delivery) {
	t.closed()
	fate := [...]string{"done", "done", "done", "done", "fails", "the first only", "answer lost", "dies before", "dies after"}[t.rnd.IntN(9)]
	if fate == "the first only" && len(batch) == 1 {
		fate = "done"
	}
	errs := make([]error, len(batch))
	arrived := batch
	switch fate {
	case "fails", "dies before":
		errs, arrived = fails(len(batch)), nil
	case "answer lost":
		errs = fails(len(batch))
	case "the first only":
		errs, arrived = append(errs[:1], fails(len(batch)-1)...), batch[:1]
	}
	if fate != "done" {
		f.failed = true
	}
	var op uint8
	var all Jobs
	for _, d := range arrived {
		is, known := t.table.staged[d.JobID]
		if !known || is.op != d.Operation || all&is.jobs != 0 {
			clear(t.accept.worlds)
		}
		op, all = t.accept.ids[is.op], all|is.jobs
	}
	if all != 0 {
		t.accept.follows(func(s Step, _ *world) bool { return s.What == Delivers && s.Op == op && s.Jobs == all }, false)
		t.closed()
	}
	t.fired[f.name+" delivers, "+fate]++
	t.note("the %s delivers %d jobs of %d: %s", f.name, len(batch), op, fate)
	if strings.HasPrefix(fate, "dies") {
		f.stops()
		return
	}
	t.replies(f, reply{errs: errs})
}

// Kinds of writes.
const (
	ackWrite   = "acknowledges"
	lastWrite  = "acknowledges the last"
	letGoWrite = "lets go"
	countWrite = "counts a failure"
	parkWrite  = "parks"
)

func kindOf(in *dynamodb.UpdateItemInput) string {
	condition, update := *in.ConditionExpression, *in.UpdateExpression
	switch {
	case strings.Contains(condition, "keep = :jobs"):
		return letGoWrite
	case strings.Contains(condition, "size(jobs) = :n"):
		return lastWrite
	case strings.Contains(update, "if_not_exists(waits"):
		return parkWrite
	case strings.Contains(update, ".#t"):
		return countWrite
	}
	return ackWrite
}

// amends carries out a write of a function.
func (t *trace) amends(f *function, k *call) {
	t.closed()
	kind := kindOf(k.write)
	fate := [...]string{"answered", "answered", "answered", "answered", "answer lost", "lost", "dies before", "dies after"}[t.rnd.IntN(8)]
	var r reply
	was := len(t.table.stream)
	if fate == "lost" || fate == "dies before" {
		r.errs = fails(1)
	} else {
		before := t.accept.abstract(t.records()[0], t.now)
		out, err := f.update(k)
		if r.out = out; err != nil {
			r = reply{errs: []error{err}}
		}
		t.seen()
		t.follow(kind, before, len(t.table.stream) == was)
		if fate == "answer lost" {
			r = reply{errs: fails(1)}
		}
	}
	if fate != "answered" {
		f.failed = true
	}
	t.fired[f.name+" "+kind]++
	t.fired["background write, "+fate]++
	t.note("the %s %s, %s, changes the record: %t", f.name, kind, fate, len(t.table.stream) > was)
	if strings.HasPrefix(fate, "dies") {
		f.stops()
		return
	}
	t.replies(f, r)
}

func (f *function) update(k *call) (*dynamodb.UpdateItemOutput, error) {
	if f.t.fault != nil && f.t.fault.amend != nil {
		return f.t.fault.amend(f, k)
	}
	return f.t.table.api.UpdateItem(context.Background(), k.write)
}

// follow takes the model's step for a write. A write that changes nothing may be the
// second of its kind, for which the model has none. The model counts no failures.
func (t *trace) follow(kind string, before Record, unchanged bool) {
	ac := t.accept
	step := func(stay bool, all ...Action) {
		ac.follows(func(s Step, _ *world) bool { return slices.Contains(all, s.What) }, stay)
		t.closed()
	}
	switch kind {
	case ackWrite:
		step(unchanged, Acknowledges)
	case lastWrite:
		step(unchanged, AcknowledgesLast)
	case letGoWrite: // which the model's drain finds, or looks for first
		ac.follows(func(s Step, w *world) bool {
			return (s.What == Acknowledges || s.What == SweepFinds) && same(w.Record, before)
		}, true)
		step(unchanged, LetsGo)
	default:
		t.closed()
	}
}

// playOnTable is play for engine, drain and sweep on DynamoDB's expressions.
func playOnTable(t *testing.T, seed uint64, f *fault) *trace {
	t.Helper()
	return playWith(t, seed, 3, f, &table{api: new(fakedynamo.DB), name: "records", staged: make(map[string]staged)}, traceConfigs())
}

// TestTracesWithDrainAndSweep follows histories of engine, drain and sweep on a table.
func TestTracesWithDrainAndSweep(t *testing.T) {
	t.Parallel()
	follow(t, 300, 200, "histories with drain and sweep", kinds, playOnTable)
}

// kinds are what the traces on a table must have.
var kinds = []string{
	"answered", "answer lost", "delayed", "doubled", "conflict", "lost", "dies before", "dies after", "lands", "completer", "operator",
	"drain begins", "drain ends", "drain delivers, done", "drain delivers, fails", "drain delivers, the first only", "drain delivers, answer lost",
	"drain delivers, dies before", "drain delivers, dies after", "drain acknowledges", "drain acknowledges the last", "drain lets go",
	"drain counts a failure", "drain parks", "sweep begins", "sweep ends", "sweep delivers, done", "sweep delivers, fails", "sweep delivers, answer lost",
	"sweep delivers, dies after", "sweep acknowledges", "sweep acknowledges the last", "sweep lets go", "sweep counts a failure",
	"background write, answered", "background write, answer lost", "background write, lost", "background write, dies before", "background write, dies after",
}

// ahead is an expiry beyond every trace.
var ahead = &types.AttributeValueMemberN{Value: "2000200000"}

// backgroundFaults are planted in drain and sweep, or in their writes.
var backgroundFaults = []fault{
	{name: "a job is removed before its delivery", sink: func(f *function, batch []jobs.Delivery) []error {
		for _, d := range batch {
			_, name, _ := strings.Cut(d.JobID, ".")
			r := f.ask(&call{write: rewritten(f, "id = :id AND attribute_exists(jobs)", "REMOVE jobs.#j", map[string]string{"#j": name}, d.Operation)})
			if len(r.errs) > 0 {
				return fails(len(batch))
			}
		}
		return f.ask(&call{jobs: batch}).errs
	}},
	{name: "a delivery under another id", sink: func(f *function, batch []jobs.Delivery) []error {
		for i := range batch {
			batch[i].JobID += "0"
		}
		return f.ask(&call{jobs: batch}).errs
	}},
	{name: "a delivery with another operation's name", sink: func(f *function, batch []jobs.Delivery) []error {
		for i := range batch {
			batch[i].Operation += "0"
		}
		return f.ask(&call{jobs: batch}).errs
	}},
	{name: "a failed delivery that says it is done", sink: func(f *function, batch []jobs.Delivery) []error {
		f.ask(&call{jobs: batch})
		return make([]error, len(batch))
	}},
	{name: "an acknowledgement that is not sent", amend: of(func(f *function, k *call) *dynamodb.UpdateItemInput {
		if kindOf(k.write) == ackWrite || kindOf(k.write) == lastWrite {
			return nil
		}
		return k.write
	})},
	{name: "an acknowledgement of all jobs", amend: of(func(f *function, k *call) *dynamodb.UpdateItemInput {
		if kindOf(k.write) == ackWrite {
			in := rewritten(f, "id = :id AND attribute_exists(jobs)", "SET jobs = :none", nil, "")
			in.ExpressionAttributeValues = map[string]types.AttributeValue{":id": k.write.ExpressionAttributeValues[":id"], ":none": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}}
			return in
		}
		return k.write
	})},
	{name: "an acknowledgement that lets an unfinished record go", amend: of(func(_ *function, k *call) *dynamodb.UpdateItemInput {
		if kindOf(k.write) == ackWrite {
			in := *k.write
			if strings.HasPrefix(*in.UpdateExpression, "SET") {
				return k.write
			}
			in.UpdateExpression = aws.String("SET exp_s = :exp " + *in.UpdateExpression + ", keep")
			in.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
			in.ExpressionAttributeValues[":exp"] = ahead
			return &in
		}
		return k.write
	})},
	{name: "an acknowledgement that raises the version", amend: of(func(_ *function, k *call) *dynamodb.UpdateItemInput {
		if kindOf(k.write) == lastWrite {
			in := *k.write
			in.UpdateExpression = aws.String(strings.Replace(*in.UpdateExpression, "SET ", "SET ver = ver + :n, ", 1))
			return &in
		}
		return k.write
	})},
	{name: "a sweep that puts an acknowledged job back", amend: putsBack("sweep")},
	{name: "a drain that puts an acknowledged job back", amend: putsBack("drain")},
	{name: "a sweep that lets a record go before its jobs", sink: func(f *function, batch []jobs.Delivery) []error {
		if f.name == "sweep" {
			in := rewritten(f, "id = :id", "SET exp_s = :exp REMOVE keep", nil, batch[0].Operation)
			in.ExpressionAttributeValues[":exp"] = ahead
			f.ask(&call{write: in})
		}
		return f.ask(&call{jobs: batch}).errs
	}},
}

// rewritten is a write of a planted fault.
func rewritten(f *function, condition, update string, names map[string]string, op string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &f.t.table.name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: f.t.pks[0]}},
		ConditionExpression: &condition, UpdateExpression: &update, ExpressionAttributeNames: names,
		ExpressionAttributeValues: map[string]types.AttributeValue{":id": &types.AttributeValueMemberS{Value: op}},
		ReturnValues:              types.ReturnValueAllNew,
	}
}

// of sends another write in the place of a function's; nil: none, as if it was applied.
func of(other func(*function, *call) *dynamodb.UpdateItemInput) func(*function, *call) (*dynamodb.UpdateItemOutput, error) {
	return func(f *function, k *call) (*dynamodb.UpdateItemOutput, error) {
		in := other(f, k)
		if in == nil {
			return &dynamodb.UpdateItemOutput{Attributes: f.t.table.item}, nil
		}
		return f.t.table.api.UpdateItem(context.Background(), in)
	}
}

// putsBack is an acknowledgement of a function after which the job is in the record as
// before.
func putsBack(name string) func(*function, *call) (*dynamodb.UpdateItemOutput, error) {
	return func(f *function, k *call) (*dynamodb.UpdateItemOutput, error) {
		tab := f.t.table
		was := tab.item["jobs"]
		out, err := tab.api.UpdateItem(context.Background(), k.write)
		if kind := kindOf(k.write); err != nil || f.name != name || kind != lastWrite && kind != ackWrite {
			return out, err
		}
		in := rewritten(f, "id = :id", "SET jobs = :jobs", nil, "")
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":id": k.write.ExpressionAttributeValues[":id"], ":jobs": was}
		return tab.api.UpdateItem(context.Background(), in)
	}
}

// Each fault in drain or sweep is found.
func TestTracesOfBackgroundFaultsAreRefused(t *testing.T) {
	t.Parallel()
	refuse(t, backgroundFaults, 1000, playOnTable)
}
