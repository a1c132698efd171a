package semantics

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// planted is a database with a fault in the requests whose line has a text, with a \n before it.
type planted struct {
	at       string
	fault    fault
	outcomes map[string]string // of the assumptions
}

// says answers in the database's stead.
func says(out any, err error) fault {
	return func(*keeper, any, fault) (any, error) { return out, err }
}

func refuses(held item) fault {
	return says(nil, &types.ConditionalCheckFailedException{Item: held})
}

func gets(it item) fault { return says(&dynamodb.GetItemOutput{Item: it}, nil) }

func changes(it item) fault { return says(&dynamodb.UpdateItemOutput{Attributes: it}, nil) }

func takes(units ...float64) (all []types.ConsumedCapacity) {
	for _, u := range units {
		all = append(all, types.ConsumedCapacity{CapacityUnits: &u})
	}
	return all
}

func transacts(units ...float64) fault {
	return says(&dynamodb.TransactWriteItemsOutput{ConsumedCapacity: takes(units...)}, nil)
}

func puts(units ...float64) fault {
	out := &dynamodb.PutItemOutput{}
	for _, u := range takes(units...) {
		out.ConsumedCapacity = &u
	}
	return says(out, nil)
}

// streams changes the records of a page.
func streams(change func([]streamtypes.Record) []streamtypes.Record) fault {
	return func(k *keeper, in any, answer fault) (any, error) {
		out, err := answer(k, in, nil)
		page := out.(*dynamodbstreams.GetRecordsOutput)
		page.Records = change(page.Records)
		return page, err
	}
}

// late has the index list nothing at the first looks.
func late(looks int) fault {
	return func(k *keeper, in any, answer fault) (any, error) {
		if _, look := in.(*dynamodb.QueryInput); look && looks > 0 {
			looks--
			return &dynamodb.QueryOutput{}, nil
		}
		return answer(k, in, nil)
	}
}

// careless forgets conditions.
func careless(k *keeper, in any, answer fault) (any, error) {
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		in.ConditionExpression = nil
	case *dynamodb.UpdateItemInput:
		in.ConditionExpression = nil
		for name := range in.ExpressionAttributeValues {
			if !strings.Contains(*in.UpdateExpression, name) {
				delete(in.ExpressionAttributeValues, name)
			}
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, t := range in.TransactItems {
			if t.Put != nil {
				t.Put.ConditionExpression = nil
			}
		}
	}
	return answer(k, in, nil)
}

// silent refuses without the item.
func silent(k *keeper, in any, answer fault) (any, error) {
	out, err := answer(k, in, nil)
	if refusal, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		refusal.Item = nil
	}
	if refusal, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for i := range refusal.CancellationReasons {
			refusal.CancellationReasons[i].Item = nil
		}
	}
	return out, err
}

func forgetful(k *keeper, in any, answer fault) (any, error) {
	if t, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
		t.ClientRequestToken = nil
	}
	return answer(k, in, nil)
}

// harmonious is without conflicts.
func harmonious(k *keeper, in any, _ fault) (any, error) { return kept(k, in, nil) }

// conflicting has each third write of its kind meet a conflict, for the assumption that there are some.
func conflicting(a Assumption) fault {
	if a.Name != "conflicts" {
		return kept
	}
	transactions, writes := 0, 0
	return func(k *keeper, in any, answer fault) (any, error) {
		switch in.(type) {
		case *dynamodb.TransactWriteItemsInput:
			if transactions++; transactions%3 == 0 {
				return nil, cancelledBy("TransactionConflict", "None")
			}
		case *dynamodb.UpdateItemInput:
			if writes++; writes%3 == 0 {
				return nil, &types.TransactionConflictException{}
			}
		}
		return answer(k, in, nil)
	}
}

func cancelledBy(codes ...string) error {
	err := &types.TransactionCanceledException{}
	for _, code := range codes {
		err.CancellationReasons = append(err.CancellationReasons, types.CancellationReason{Code: &code})
	}
	return err
}

func faults() []planted {
	const (
		made, accepted = "differs: the write was made", "differs: it was accepted"
		transacted     = "differs: the transaction was made"
		met            = "differs: of 180 writes of an item at once, %d transactions and %d single writes met a conflict"
		cancellation   = "shows nothing: TransactionCanceledException: "
		right          = ", not [{INSERT  1} {MODIFY 1 2}]"
	)
	one, jobs := item{"n": num(3)}, item{"jobs": record(item{"y": str("2")})}
	return []planted{
		{"", says(nil, errors.New("lost")), map[string]string{"refused-put-has-item": "shows nothing: lost", "one-winner": "shows nothing: lost", "stream-order": "shows nothing: lost"}},
		{"", careless, map[string]string{
			"refused-put-has-item": made, "refused-update-has-item": made, "one-winner": "differs: of 16 at once 16 were made",
			"absent-compares-false": "differs: exp_s < :now is true", "paths-of-maps": "differs: attribute_exists(req.o) is true",
			"transaction-all-or-none": transacted, "cancelled-has-items": transacted, "stream-of-changes-only": transacted,
		}},
		{"", silent, map[string]string{
			"refused-put-has-item":    "differs: the item is map[], not map[holder:first jobs:map[0:job] pk:a ver:7]",
			"refused-update-has-item": "differs: holder is nothing, not first", "cancelled-has-items": "differs: the item is map[], not map[holder:first pk:b ver:3]",
		}},
		{"", forgetful, map[string]string{"token-repeats": "differs: n is 2, not 1", "token-of-another": accepted}},
		{"update none", refuses(one), map[string]string{"refused-update-has-item": "differs: where there was no item, the refusal has 1 attributes, and 0 are there"}},
		{"get none", gets(one), map[string]string{"refused-update-has-item": "differs: where there was no item, the refusal has 0 attributes, and 1 are there"}},
		{"put race", refuses(nil), map[string]string{"one-winner": "differs: of 16 at once 0 were made"}},
		{"put race7 [holder:15]", puts(), map[string]string{"one-winner": "differs: of 16 at once 2 were made"}},
		{"size(jobs)", refuses(nil), map[string]string{"size-counts-entries": "differs: size(jobs) = :n is false"}},
		{"update a", changes(item{"run_ms": num(9), "doubt_ms": num(9), "tries": num(1)}), map[string]string{"update-reads-before-it-writes": "differs: doubt_ms is 9, not 5"}},
		{"update a", changes(jobs), map[string]string{"entries-apart": "differs: jobs is map[y:2], not map[y:2 z:1]"}},
		{"update b", changes(jobs), map[string]string{"entries-apart": accepted}},
		{"update b", refuses(nil), map[string]string{"entries-apart": "shows nothing: ConditionalCheckFailedException: "}},
		{"get a", gets(one), map[string]string{
			"consistent-reads": "differs: ver is nothing, not 0", "transaction-all-or-none": "differs: the cancelled transaction wrote a",
			"token-repeats": "differs: n is 3, not 1", "conflicts": "differs: n is 3, not 120",
		}},
		{"get a", gets(nil), map[string]string{"transaction-all-or-none": "differs: a isn't there after the transaction"}},
		{"put c", says(nil, cancelledBy("None", "None", "ConditionalCheckFailed")), map[string]string{"cancelled-has-items": "differs: the reasons are [None None ConditionalCheckFailed]"}},
		{"", harmonious, map[string]string{"conflicts": fmt.Sprintf(met, 0, 0)}},
		{"transact", harmonious, map[string]string{"conflicts": fmt.Sprintf(met, 0, 15)}},
		{"\nupdate", harmonious, map[string]string{"conflicts": fmt.Sprintf(met, 45, 0)}},
		{"put w5", says(nil, cancelledBy("TransactionConflict")), map[string]string{"conflicts": cancellation}},
		{"put w5", says(nil, cancelledBy("None", "TransactionConflict")), map[string]string{"conflicts": cancellation}},
		{"i100", transacts(), map[string]string{"hundred-items": accepted}},
		{"i0, put i0", transacts(), map[string]string{"hundred-items": accepted}},
		{"[body:409601]", puts(), map[string]string{"item-size": accepted}},
		{"update a", changes(nil), map[string]string{"item-size": accepted}},
		{"", transacts(), map[string]string{"transaction-size": accepted, "units-of-transactions": "shows nothing: the answer has units of 0 tables"}},
		{"", says(nil, cancelledBy("None", "ValidationError")), map[string]string{"transaction-size": "holds"}},
		{"", says(nil, cancelledBy("None")), map[string]string{"transaction-size": cancellation}},
		{"put a", puts(2), map[string]string{"units-of-writes": "differs: 2 units, not 1"}},
		{"put b", puts(8), map[string]string{"units-of-writes": "differs: 8 units, not 4"}},
		{"put b", puts(), map[string]string{"units-of-writes": "shows nothing: the answer has no units"}},
		{"", transacts(2), map[string]string{"units-of-transactions": "differs: 2 units, not 4"}},
		{"", transacts(4, 4), map[string]string{"units-of-transactions": "shows nothing: the answer has units of 2 tables"}},
		{"", late(100), map[string]string{"sparse-index": "holds there after 20000 ms"}},
		{"", late(101), map[string]string{"sparse-index": "differs: the index hasn't the item within 20s"}},
		{"REMOVE", changes(nil), map[string]string{"sparse-index": "differs: the index still has the item within 20s"}},
		{"records", streams(func(all []streamtypes.Record) []streamtypes.Record { return slices.Repeat(all, 2) }), map[string]string{
			"stream-order": "differs: 80 changes, not 40", "stream-of-changes-only": "differs: a has the changes [{INSERT  1} {INSERT  1} {MODIFY 1 2} {MODIFY 1 2}]" + right,
		}},
		{"records", streams(func(all []streamtypes.Record) []streamtypes.Record {
			return slices.DeleteFunc(all, func(r streamtypes.Record) bool { return r.EventName == "INSERT" })
		}), map[string]string{
			"stream-order": "differs: 39 changes, not 40", "stream-of-changes-only": "differs: a has the changes [{MODIFY 1 2}]" + right,
		}},
		{"records", streams(func(all []streamtypes.Record) []streamtypes.Record {
			slices.Reverse(all)
			return all
		}), map[string]string{"stream-order": "differs: change 0 is {MODIFY 0 1}, not {INSERT  0}"}},
		{"records", says(&dynamodbstreams.GetRecordsOutput{NextShardIterator: aws.String("early 0")}, nil), map[string]string{
			"stream-order": "differs: the stream hasn't the last write within 20s",
		}},
	}
}

var number = regexp.MustCompile(`\d+`)

// Each assumption holds where it is kept, and is broken by a fault, which it tells.
func TestPlanted(t *testing.T) {
	t.Parallel()
	unbroken := map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		for _, a := range All() {
			unbroken[a.Name] = true
			figure, err := a.Examine(t.Context(), (&keeper{fault: conflicting(a)}).place())
			if got := number.ReplaceAllString(figure, "#"); err != nil || got != a.Figure {
				t.Errorf("%s, kept: got %s, %v, want %s", a.Name, got, err, a.Figure)
			}
			for _, f := range faults() {
				expected, ok := f.outcomes[a.Name]
				if !ok {
					continue
				}
				base := conflicting(a)
				k := &keeper{fault: func(k *keeper, in any, answer fault) (any, error) {
					if !strings.Contains("\n"+k.sent[len(k.sent)-1], f.at) {
						return base(k, in, answer)
					}
					return f.fault(k, in, func(k *keeper, in any, _ fault) (any, error) { return base(k, in, answer) })
				}}
				if got := outcome(a.Examine(t.Context(), k.place())); got != expected {
					t.Errorf("%s, %q: got %s, want %s", a.Name, f.at, got, expected)
				}
				if strings.HasPrefix(expected, "differs: ") {
					delete(unbroken, a.Name)
				}
			}
		}
	})
	if len(unbroken) > 0 {
		t.Errorf("no fault breaks %v", unbroken)
	}
}
