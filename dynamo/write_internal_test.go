package dynamo

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo/internal/item"
)

type deniedError struct{}

func (*deniedError) Error() string                         { return "denied" }
func (*deniedError) ErrorCode() string                     { return "AccessDeniedException" }
func (*deniedError) ErrorMessage() string                  { return "" }
func (*deniedError) ErrorFault() (fault smithy.ErrorFault) { return fault }

// Values of each kind have a text, in which a person finds them.
func TestTextOfValues(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]item.Value{
		`"a \"b\""`:                     str(`a "b"`),
		"-1.5":                          &types.AttributeValueMemberN{Value: "-1.5"},
		"true":                          &types.AttributeValueMemberBOOL{Value: true},
		"null":                          &types.AttributeValueMemberNULL{Value: true},
		"3 bytes":                       &types.AttributeValueMemberB{Value: []byte("abc")},
		`["a",[]]`:                      &types.AttributeValueMemberL{Value: []item.Value{str("a"), &types.AttributeValueMemberL{}}},
		`{"a":"1","b":{}}`:              &types.AttributeValueMemberM{Value: item.Map{"b": &types.AttributeValueMemberM{}, "a": str("1")}},
		`["a" "b"]`:                     &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
		"[1 2]":                         &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
		"*types.AttributeValueMemberBS": &types.AttributeValueMemberBS{Value: [][]byte{{1}}},
	} {
		if got := text(v); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A write as text has its expressions with the placeholders filled in, also where one is
// the beginning of another.
func TestTextOfAWrite(t *testing.T) {
	t.Parallel()
	key := map[string]string{"id": "1"}
	for want, w := range map[string]*Write{
		`put t {"id":"1"}`:    Put("t", key),
		`delete t {"id":"1"}`: Delete("t", key),
		`update t {"id":"1"} SET n = "1", nn = "2" if n < "1"`: Update("t", key, "SET #n = :n, #nn = :nn", Args{"#n": "n", "#nn": "nn", ":n": "1", ":nn": "2"}).If("#n < :n"),
	} {
		if err := w.Err(); err != nil || w.String() != want {
			t.Errorf("%v, %v, want %s", w, err, want)
		}
	}
}

// formless is a value that has no form in DynamoDB.
type formless struct{}

func (formless) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return nil, errors.New("no form")
}

// Each mistake in a write is told with the write and its place, before anything is sent.
func TestMistakesInAWrite(t *testing.T) {
	t.Parallel()
	key := map[string]string{"id": "1"}
	update := func(expr string, args ...Args) *Write { return Update("t", key, expr, args...) }
	for want, w := range map[string]*Write{
		"dynamo: put : the table is empty":                                                                    Put("", key),
		"dynamo: update t: the update expression is empty":                                                    update(""),
		"dynamo: check t: the condition is empty":                                                             Check("t", key, ""),
		`dynamo: update t: placeholder ":n" stands for nothing: say what in Args`:                             update("SET n = :n"),
		`dynamo: update t: placeholder "#n" stands for nothing: say what in Args`:                             update("SET #n = :v", Args{":v": 1}),
		`dynamo: update t: placeholder "#m" is in no expression`:                                              update("REMOVE n", Args{"#m": "m"}),
		`dynamo: update t: placeholder ":v" is in no expression`:                                              update("REMOVE n", Args{":v": 1}),
		`dynamo: update t: placeholder ":va" stands for nothing: say what in Args`:                            update("SET n = :va", Args{":v": 1}),
		"dynamo: update t: #n stands for two attributes":                                                      update("SET #n = :v", Args{"#n": "n", ":v": 1}, Args{"#n": "m"}),
		"dynamo: update t: :v stands for two values":                                                          update("SET n = :v", Args{":v": 1}, Args{":v": 2}),
		`dynamo: update t: placeholder "v": "#name" with the name of an attribute, or ":value" with a value`:  update("SET n = :v", Args{"v": 1}),
		`dynamo: update t: placeholder "#n": "#name" with the name of an attribute, or ":value" with a value`: update("SET #n = :v", Args{"#n": 1, ":v": 1}),
		"dynamo: update t: :v: no form":                                                                       update("SET n = :v", Args{":v": formless{}}),
		"dynamo: Raw: the item is empty":                                                                      Raw(types.TransactWriteItem{}),
		"dynamo: delete t: a Raw write takes no further condition":                                            Raw(types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("t"), Key: id("1")}}).If("x = y"),
	} {
		if err := w.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for name, w := range map[string]*Write{
		"the same twice":       update("SET #n = :v", Args{"#n": "n", ":v": 1}, Args{"#n": "n", ":v": 1}),
		"names of all signs":   update("SET #aZ_09 = :zA_90", Args{"#aZ_09": "n", ":zA_90": 1}),
		"an element of a list": update("SET #a[0] = :v", Args{"#a": "a", ":v": 1}),
		"side by side":         update("SET #a=:b,#c=:d", Args{"#a": "a", ":b": 1, "#c": "c", ":d": 2}),
		"in a condition only":  update("REMOVE n").If("#n = :v", Args{"#n": "n", ":v": 1}),
	} {
		if err := w.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What a Raw write says is checked in each of its expressions.
	cond, expr := aws.String("#c = :c"), aws.String("SET #u = :u")
	names, values := map[string]string{"#c": "c"}, item.Map{":c": str("1")}
	both, bothValues := map[string]string{"#c": "c", "#u": "u"}, item.Map{":c": str("1"), ":u": str("1")}
	for name, raw := range map[string]types.TransactWriteItem{
		"put":    {Put: &types.Put{TableName: aws.String("t"), Item: id("1"), ConditionExpression: cond, ExpressionAttributeNames: names, ExpressionAttributeValues: values}},
		"update": {Update: &types.Update{TableName: aws.String("t"), Key: id("1"), UpdateExpression: expr, ConditionExpression: cond, ExpressionAttributeNames: both, ExpressionAttributeValues: bothValues}},
		"delete": {Delete: &types.Delete{TableName: aws.String("t"), Key: id("1"), ConditionExpression: cond, ExpressionAttributeNames: names, ExpressionAttributeValues: values}},
		"check":  {ConditionCheck: &types.ConditionCheck{TableName: aws.String("t"), Key: id("1"), ConditionExpression: cond, ExpressionAttributeNames: names, ExpressionAttributeValues: values}},
	} {
		w := Raw(raw)
		if err := w.Err(); err != nil || w.verb != name || w.table != "t" {
			t.Errorf("%s: %v, %v", name, w, err)
		}
		delete(values, ":c")
		delete(bothValues, ":u")
		if w.Err() == nil {
			t.Errorf("%s: a value is missing, and that is no mistake", name)
		}
		values[":c"], bothValues[":u"] = str("1"), str("1")
	}
}
