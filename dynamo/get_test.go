package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// getting is a table of the user's with one item, or an error.
type getting struct {
	item map[string]types.AttributeValue
	err  error
}

func (g getting) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if !aws.ToBool(in.ConsistentRead) {
		return nil, errors.New("a weak read")
	}
	return &dynamodb.GetItemOutput{Item: g.item}, g.err
}

type stock struct {
	PK   string `dynamodbav:"pk"`
	N    int    `dynamodbav:"n"`
	Note string `dynamodbav:"note"`
}

// What was read is compared when the phase commits: all of it, or what is named, and the
// absence of what the struct has beside.
func TestGetComparesWhatWasRead(t *testing.T) {
	t.Parallel()
	str, num := tabletest.Str, tabletest.Num
	key := map[string]string{"pk": "1"}
	type attributes = map[string]types.AttributeValue
	read := attributes{"pk": str("1"), "n": num(5)}
	many := func(n int) attributes {
		it := attributes{"pk": str("1")}
		for i := range n {
			it[fmt.Sprint("a", i)] = num(1)
		}
		return it
	}
	var into map[string]any
	for name, tt := range map[string]struct {
		key   any
		read  getting
		out   any
		on    []string
		now   attributes // when the phase commits
		found bool
		err   string // of Get
		stays bool   // the phase commits, since all is as it was read
	}{
		"unchanged":                      {read: getting{item: read}, now: read, found: true, stays: true},
		"another value":                  {read: getting{item: read}, now: attributes{"pk": str("1"), "n": num(6)}, found: true},
		"what was absent has come":       {read: getting{item: read}, now: attributes{"pk": str("1"), "n": num(5), "note": str("x")}, found: true},
		"what no field knows has come":   {read: getting{item: read}, now: attributes{"pk": str("1"), "n": num(5), "x": str("x")}, found: true, stays: true},
		"gone":                           {read: getting{item: read}, found: true},
		"nothing, and still nothing":     {stays: true},
		"nothing, and then a key":        {now: attributes{"pk": str("1")}},
		"nothing, and then an item":      {now: read},
		"a key and nothing else":         {read: getting{item: attributes{"pk": str("1")}}, now: attributes{"pk": str("1")}, found: true, stays: true},
		"of a key the rest has come":     {read: getting{item: attributes{"pk": str("1")}}, now: read, found: true},
		"a key that is gone":             {read: getting{item: attributes{"pk": str("1")}}, found: true},
		"the named one, unchanged":       {read: getting{item: read}, on: []string{"n"}, now: attributes{"pk": str("1"), "n": num(5), "note": str("x")}, found: true, stays: true},
		"the named one, changed":         {read: getting{item: read}, on: []string{"n"}, now: attributes{"pk": str("1"), "n": num(6)}, found: true},
		"a named one of the struct only": {read: getting{item: read}, on: []string{"note"}, now: attributes{"pk": str("1"), "n": num(6)}, found: true, stays: true},
		"it has come":                    {read: getting{item: read}, on: []string{"note"}, now: attributes{"pk": str("1"), "note": str("x")}, found: true},
		"a named one of the item only":   {read: getting{item: attributes{"pk": str("1"), "x": num(1)}}, on: []string{"x"}, now: attributes{"pk": str("1"), "x": num(2)}, found: true},
		"a named one of neither":         {read: getting{item: read}, on: []string{"N"}, err: `has an attribute "N"`},
		"any name, into a map":           {read: getting{item: read}, out: &into, on: []string{"x"}, now: attributes{"pk": str("1"), "x": num(2)}, found: true},
		"140 attributes":                 {read: getting{item: many(140)}, out: &into, now: many(140), found: true, stays: true},
		"141 attributes":                 {read: getting{item: many(141)}, out: &into, err: "141 attributes can't be compared"},
		"141, of which one is named":     {read: getting{item: many(141)}, out: &into, on: []string{"a7"}, now: many(8), found: true, stays: true},
		"no key":                         {key: 1, err: "key: "},
		"no answer":                      {read: getting{err: errors.New("connection reset")}, err: "connection reset"},
		"another type":                   {read: getting{item: attributes{"pk": str("1"), "n": str("five")}}, err: "dynamo: get stock: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // a phase is run again for five seconds
				var db fakedynamo.DB
				st, err := dynamo.New(&db, "records")
				if err != nil {
					t.Fatal(err)
				}
				if tt.now != nil {
					if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("stock"), Item: tt.now}); err != nil {
						t.Fatal(err)
					}
				}
				if tt.key == nil {
					tt.key = key
				}
				if tt.out == nil {
					tt.out = &stock{N: -1}
				}
				var found bool
				var failed error
				_, err = idem.New(st, callertest.Anybody).Do(t.Context(), idem.Request{Key: "k", Method: "POST", Path: "/"}, func(ctx context.Context) (idem.Response, error) {
					return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
						found, failed = dynamo.Get(ctx, tx, tt.read, "stock", tt.key, tt.out, tt.on...)
						return idem.Response{Status: 201}, failed
					})
				})
				if found != tt.found || (failed != nil) != (tt.err != "") || failed != nil && !strings.Contains(failed.Error(), tt.err) {
					t.Fatalf("found: %t, %v", found, failed)
				}
				if failed == nil && (err == nil) != tt.stays || !tt.stays && failed == nil && !errors.Is(err, idem.ErrConflict) {
					t.Errorf("the phase: %v, want it to commit: %t", err, tt.stays)
				}
				if s, ok := tt.out.(*stock); ok && failed == nil && !tt.found && s.N != -1 {
					t.Errorf("nothing was read into %+v", s)
				}
			})
		})
	}
}
