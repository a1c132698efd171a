package semantics

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/middleware"

	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// planted is a database with a fault: in what it is asked for, in what it answers, or in what it refuses.
type planted struct {
	ask     func(in any)
	instead func(in any) error
	answer  func(in, out any)
	refusal func(item) item   // that refusals have
	breaks  map[string]string // the assumptions, with what their examinations say then
}

func (f planted) middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("fault", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if f.ask != nil {
			f.ask(in.Parameters)
		}
		if f.instead != nil {
			if err := f.instead(in.Parameters); err != nil {
				return middleware.InitializeOutput{}, middleware.Metadata{}, err
			}
		}
		out, meta, err := next.HandleInitialize(ctx, in)
		if f.answer != nil && err == nil {
			f.answer(in.Parameters, out.Result)
		}
		if f.refusal != nil {
			if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
				failed.Item = f.refusal(failed.Item)
			}
			if reasons, other := cancelled(err); other == nil && len(reasons) == 3 {
				reasons[1].Item = f.refusal(reasons[1].Item)
			}
		}
		return out, meta, err
	}), middleware.Before)
}

// at is the place with the database that has the fault.
func (f planted) at(p Place) Place {
	o, s := p.DB.Options(), p.Streams.Options()
	o.APIOptions, s.APIOptions = append(slices.Clone(o.APIOptions), f.middleware), append(slices.Clone(s.APIOptions), f.middleware)
	p.DB, p.Streams = dynamodb.New(o), dynamodbstreams.New(s)
	return p
}

// quick has an assumption of many calls examined in memory, or any other one. DynamoDB Local keeps it by TestHolds.
func quick(p Place, a Assumption, other bool) Place {
	if other || slices.Contains([]string{"conflicts", "one-winner", "consistent-reads"}, a.Name) {
		p.DB = dynamodb.New(dynamodb.Options{Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: &fakedynamo.Server{}})
	}
	return p
}

// with has a condition instead of all others.
func with(condition string) func(any) {
	return func(in any) {
		switch in := in.(type) {
		case *dynamodb.PutItemInput:
			if in.ConditionExpression != nil {
				in.ConditionExpression = text(condition)
			}
		case *dynamodb.UpdateItemInput:
			in.ConditionExpression = text(condition)
			for name := range in.ExpressionAttributeValues {
				if !strings.Contains(*in.UpdateExpression, name) {
					delete(in.ExpressionAttributeValues, name)
				}
			}
		case *dynamodb.TransactWriteItemsInput:
			for _, t := range in.TransactItems {
				if t.Put != nil && t.Put.ConditionExpression != nil {
					t.Put.ConditionExpression = text(condition)
				}
			}
		}
	}
}

// having is an item with another attribute; without it, if that is nil.
func having(name string, v types.AttributeValue) func(item) item {
	return func(it item) item {
		it = maps.Clone(it)
		if delete(it, name); it != nil && v != nil {
			it[name] = v
		}
		return it
	}
}

// updated changes the items that updates return, and got those that reads return.
func updated(change func(item) item) func(any, any) {
	return func(_, out any) {
		if u, ok := out.(*dynamodb.UpdateItemOutput); ok {
			u.Attributes = change(u.Attributes)
		}
	}
}

func got(name string, it item) func(any, any) {
	return func(in, out any) {
		if g, ok := out.(*dynamodb.GetItemOutput); ok && strings.HasSuffix(textOf(in.(*dynamodb.GetItemInput).Key["pk"]), "#"+name) {
			g.Item = it
		}
	}
}

// conflicting has the first writes conflict: so many single ones, and a transaction with these reasons.
func conflicting(single int64, reasons ...string) func(any) error {
	var writes, transactions atomic.Int64
	return func(in any) error {
		switch in := in.(type) {
		case *dynamodb.UpdateItemInput:
			if writes.Add(1) <= single {
				return &types.TransactionConflictException{}
			}
		case *dynamodb.TransactWriteItemsInput:
			if in.TransactItems[0].Update != nil && reasons != nil && transactions.Add(1) == 1 {
				failed := &types.TransactionCanceledException{}
				for _, r := range reasons {
					failed.CancellationReasons = append(failed.CancellationReasons, types.CancellationReason{Code: aws.String(r)})
				}
				return failed
			}
		}
		return nil
	}
}

// rewrite changes the expressions of updates, and redirect those of one item.
func rewrite(old, replacement string) func(any) { return redirect("", old, replacement) }

func redirect(name, old, replacement string) func(any) {
	return func(in any) {
		if u, ok := in.(*dynamodb.UpdateItemInput); ok && strings.HasSuffix(textOf(u.Key["pk"]), name) {
			u.UpdateExpression = aws.String(strings.ReplaceAll(*u.UpdateExpression, old, replacement))
		}
	}
}

// sizing changes the units of writes.
func sizing(times float64) func(any, any) {
	return func(_, out any) {
		switch out := out.(type) {
		case *dynamodb.PutItemOutput:
			if *out.ConsumedCapacity.CapacityUnits *= times; times == 0 {
				out.ConsumedCapacity = nil
			}
		case *dynamodb.TransactWriteItemsOutput:
			*out.ConsumedCapacity[0].CapacityUnits *= times
		}
	}
}

func faults() map[string]planted {
	var mu sync.Mutex
	read := map[string]item{}
	var lost atomic.Bool
	return map[string]planted{
		"refusals without items": {
			breaks: map[string]string{
				"refused-put-has-item": "differs: the refusal has 0 of 4 attributes", "refused-update-has-item": "differs: holder is nothing, not first",
				"cancelled-has-items": "differs: the reason has 0 of 3 attributes",
			},
			refusal: func(item) item { return nil },
		},
		"refusals with less":       {refusal: having("ver", nil), breaks: map[string]string{"refused-put-has-item": "differs: the refusal has 3 of 4 attributes", "cancelled-has-items": "differs: the reason has 2 of 3 attributes"}},
		"refusals with other jobs": {refusal: having("jobs", str("job")), breaks: map[string]string{"refused-put-has-item": "differs: the refusal has 4 of 4 attributes"}},
		"refusals with no jobs":    {refusal: having("jobs", record(nil)), breaks: map[string]string{"refused-put-has-item": "differs: the refusal has 4 of 4 attributes"}},
		"refusals with another holder": {refusal: having("holder", str("second")), breaks: map[string]string{
			"refused-put-has-item": "differs: holder is second, not first", "refused-update-has-item": "differs: holder is second, not first", "cancelled-has-items": "differs: holder is second, not first",
		}},
		"refusals of nothing with items": {
			refusal: func(it item) item { return item{"holder": str(cmp.Or(textIn(it, "holder"), "none"))} },
			breaks:  map[string]string{"refused-update-has-item": "differs: where there was no item, the refusal has 1 attributes, and 0 are there"},
		},
		"items from nowhere": {answer: got("none", item{"a": num(1)}), breaks: map[string]string{"refused-update-has-item": "differs: where there was no item, the refusal has 0 attributes, and 1 are there"}},
		"conditions that hold": {
			breaks: map[string]string{
				"refused-put-has-item": "differs: the write was made", "refused-update-has-item": "differs: the write was made", "one-winner": "differs: of 16 at once 16 were made",
				"absent-compares-false": "differs: exp_s < :now is true", "paths-of-maps": "differs: attribute_exists(req.o) is true",
				"transaction-all-or-none": "differs: the transaction was made", "cancelled-has-items": "differs: the transaction was made",
			},
			ask: with(""),
		},
		"conditions that don't": {
			breaks: map[string]string{
				"one-winner": "differs: of 16 at once 0 were made", "absent-compares-false": "differs: NOT exp_s < :now is false", "cancelled-has-items": "differs: the reasons are [ConditionalCheckFailed ConditionalCheckFailed ConditionalCheckFailed]",
			},
			ask: with("attribute_exists(nothing)"),
		},
		"size of another map": {breaks: map[string]string{"size-counts-entries": "differs: size(jobs) = :n is false"}, ask: func(in any) {
			if p, ok := in.(*dynamodb.PutItemInput); ok {
				if jobs, ok := p.Item["jobs"].(*types.AttributeValueMemberM); ok {
					delete(jobs.Value, "0")
				}
			}
		}},
		"an update that reads what it writes": {breaks: map[string]string{"update-reads-before-it-writes": "differs: doubt_ms is 9, not 5"}, ask: rewrite("if_not_exists(run_ms, created_ms)", ":now")},
		"an update that changes nothing":      {breaks: map[string]string{"update-reads-before-it-writes": "differs: run_ms is 5, not 9"}, answer: updated(having("run_ms", num(5)))},
		"an update that counts nothing":       {breaks: map[string]string{"update-reads-before-it-writes": "differs: tries is nothing, not 1"}, answer: updated(having("tries", nil))},
		"a removal that takes a neighbour":    {breaks: map[string]string{"entries-apart": "differs: z is nothing, not 1"}, ask: rewrite("jobs.nothing", "jobs.z")},
		"a removal that takes the map":        {breaks: map[string]string{"entries-apart": "differs: jobs is nothing"}, answer: updated(having("jobs", nil))},
		"a removal that leaves an entry":      {breaks: map[string]string{"entries-apart": "differs: x is 1, not nothing"}, ask: rewrite("jobs.x, ", "")},
		"an entry that stays as it was":       {breaks: map[string]string{"entries-apart": "differs: y is 1, not 2"}, ask: rewrite("jobs.y = :two", "beside = :two")},
		"an entry without a map":              {breaks: map[string]string{"entries-apart": "differs: it was accepted"}, ask: redirect("#b", "jobs.y", "jobs")},
		"stale reads": {breaks: map[string]string{"consistent-reads": "differs: ver is 0, not 1"}, answer: func(in, out any) {
			mu.Lock()
			defer mu.Unlock()
			if get, ok := in.(*dynamodb.GetItemInput); ok {
				pk, got := textOf(get.Key["pk"]), out.(*dynamodb.GetItemOutput)
				if old, ok := read[pk]; ok {
					got.Item = old
				}
				read[pk] = got.Item
			}
		}},
		"half a cancelled transaction": {answer: got("b", item{"a": num(1)}), breaks: map[string]string{"transaction-all-or-none": "differs: the cancelled transaction wrote b"}},
		"half a transaction":           {answer: got("b", nil), breaks: map[string]string{"transaction-all-or-none": "differs: b isn't there after the transaction"}},
		"no tokens": {breaks: map[string]string{"token-repeats": "differs: n is 2, not 1", "token-of-another": "differs: it was accepted"}, ask: func(in any) {
			if t, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
				t.ClientRequestToken = nil
			}
		}},
		"conflicts":                      {instead: conflicting(1, "TransactionConflict", "None"), breaks: map[string]string{"conflicts": "1 transactions and 1 writes of 180 met one"}},
		"conflicts of writes only":       {instead: conflicting(2), breaks: map[string]string{"conflicts": "differs: of 180 writes of an item at once, 0 transactions and 2 single writes met a conflict"}},
		"conflicts of transactions only": {instead: conflicting(0, "TransactionConflict", "None"), breaks: map[string]string{"conflicts": "differs: of 180 writes of an item at once, 1 transactions and 0 single writes met a conflict"}},
		"conflicts of another item":      {instead: conflicting(1, "None", "TransactionConflict"), breaks: map[string]string{"conflicts": "operation error DynamoDB: TransactWriteItems, TransactionCanceledException: "}},
		"conflicts of three items":       {instead: conflicting(1, "TransactionConflict", "None", "None"), breaks: map[string]string{"conflicts": "operation error DynamoDB: TransactWriteItems, TransactionCanceledException: "}},
		"a lost write": {breaks: map[string]string{"conflicts": "differs: n is 179, not 180"}, ask: func(in any) {
			if u, ok := in.(*dynamodb.UpdateItemInput); ok && lost.CompareAndSwap(false, true) {
				rewrite("n = n", "m = n")(u)
			}
		}},
		"other limits": {breaks: map[string]string{"hundred-items": "differs: it was accepted", "item-size": "differs: it was accepted", "transaction-size": "differs: it was accepted"}, ask: func(in any) {
			shrink := func(it item) {
				if s := textOf(it["body"]); len(s) > 300<<10 {
					it["body"] = str(s[:100])
				}
			}
			switch in := in.(type) {
			case *dynamodb.PutItemInput:
				shrink(in.Item)
			case *dynamodb.TransactWriteItemsInput:
				in.TransactItems = in.TransactItems[:min(100, len(in.TransactItems))]
				for _, t := range in.TransactItems {
					if t.Put != nil {
						shrink(t.Put.Item)
					}
				}
			}
		}},
		"an item twice": {breaks: map[string]string{"hundred-items": "differs: it was accepted"}, ask: func(in any) {
			if t, ok := in.(*dynamodb.TransactWriteItemsInput); ok && len(t.TransactItems) == 2 {
				t.TransactItems = t.TransactItems[:1]
			}
		}},
		"an update beyond the limit": {breaks: map[string]string{"item-size": "differs: it was accepted"}, ask: rewrite("SET b = :one", "SET body = :one")},
		"units of another price":     {breaks: map[string]string{"units-of-writes": "differs: 2 units, not 1"}, answer: sizing(2)},
		"half the units":             {breaks: map[string]string{"units-of-writes": "differs: 0.5 units, not 1"}, answer: sizing(0.5)},
		"no units":                   {breaks: map[string]string{"units-of-writes": "the answer has no units"}, answer: sizing(0)},
		"units of large items": {breaks: map[string]string{"units-of-writes": "differs: 5 units, not 4"}, answer: func(_, out any) {
			if p, ok := out.(*dynamodb.PutItemOutput); ok && *p.ConsumedCapacity.CapacityUnits > 1 {
				*p.ConsumedCapacity.CapacityUnits++
			}
		}},
		"units of transactions": {breaks: map[string]string{"units-of-transactions": ""}, answer: sizing(2)},
		"units of two tables": {breaks: map[string]string{"units-of-transactions": "the answer has units of 2 tables"}, answer: func(_, out any) {
			if t, ok := out.(*dynamodb.TransactWriteItemsOutput); ok {
				t.ConsumedCapacity = append(t.ConsumedCapacity, t.ConsumedCapacity...)
			}
		}},
	}
}

// textIn is an attribute of an item; "" if it isn't there.
func textIn(it item, name string) string {
	if it[name] == nil {
		return ""
	}
	return textOf(it[name])
}

// said is what an examination says.
func said(figure string, err error) string {
	switch {
	case IsDifference(err):
		return "differs: " + err.Error()
	case err != nil:
		return err.Error()
	}
	return figure
}

// Each fault is found by the assumptions that it breaks, and each assumption that DynamoDB Local
// keeps is broken once.
func TestPlanted(t *testing.T) {
	t.Parallel()
	p := local(t)
	broken := map[string]bool{"sparse-index": true, "stream-order": true, "stream-of-changes-only": true} // by TestIndex and TestStream
	for name, f := range faults() {
		for _, a := range All() {
			want, breaks := f.breaks[a.Name]
			if !breaks {
				continue
			}
			broken[a.Name] = true
			t.Run(name+"/"+a.Name, func(t *testing.T) {
				t.Parallel()
				if got := said(a.Examine(t.Context(), f.at(quick(p, a, false)))); got != want {
					t.Errorf("%s, not %s", got, want)
				}
			})
		}
	}
	for _, a := range All() {
		if a.Local == "" && !broken[a.Name] {
			t.Errorf("no fault breaks %s", a.Name)
		}
	}
}

// DynamoDB Local keeps the others, and an examination whose call is refused shows nothing.
func TestHolds(t *testing.T) {
	t.Parallel()
	p := local(t)
	no := errors.New("no")
	want := map[string]string{
		"one-winner": "8 races of 16", "consistent-reads": "50 reads", "stream-order": "40 changes", "sparse-index": "there after # ms",
		"conflicts":             "differs: of 180 writes of an item at once, 0 transactions and 0 single writes met a conflict",
		"units-of-transactions": "differs: 2 units, not 4",
	}
	for _, a := range All() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			p := p
			for n, whole := int64(0), int64(0); n <= whole; n++ {
				if n == 3 && whole > 20 { // many alike come before
					n = whole - 7
				}
				var calls atomic.Int64
				if n == 1 {
					p = quick(p, a, !strings.HasPrefix(a.Name, "stream-") && a.Name != "sparse-index" && a.Name != "hundred-items")
				}
				got := said(a.Examine(t.Context(), planted{instead: func(any) error {
					if calls.Add(1) == n {
						return no
					}
					return nil
				}}.at(p)))
				if n == 0 {
					whole = calls.Load()
					if got = number.ReplaceAllString(got, "after # ms"); got != want[a.Name] {
						t.Errorf("%s, not %s", got, want[a.Name])
					}
				} else if calls.Load() >= n && !strings.HasSuffix(got, ", no") {
					t.Errorf("call %d is refused: %s", n, got)
				}
			}
		})
	}
}

var number = regexp.MustCompile(`after \d+ ms`)
