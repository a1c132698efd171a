package dynamo

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

func str(s string) item.Value { return &types.AttributeValueMemberS{Value: s} }

func id(s string) item.Map { return item.Map{"id": str(s)} }

// got is the check of a Get: what it read of an item must be unchanged.
func got(found bool, read item.Map) *Write {
	w := &Write{verb: "check", table: "t", key: id("1"), read: read, found: found, names: map[string]string{"#g": "x"}, cond: "attribute_not_exists(#g)"}
	if found {
		w.cond, w.values = "#g = :g", item.Map{":g": str("old")}
	}
	return w
}

func all(ws ...*Write) (writes []store.Write) {
	for _, w := range ws {
		writes = append(writes, w)
	}
	return writes
}

// Writes on one item: DynamoDB takes one for each, so what was read with Get joins the
// write, whatever comes first, and everything else is refused before it is sent.
func TestWritesOnOneItem(t *testing.T) {
	t.Parallel()
	x := item.Map{"x": str("old")}
	put := func() *Write { return Put("t", map[string]string{"id": "1", "y": "new"}) }
	update := func() *Write { return Update("t", map[string]string{"id": "1"}, "SET y = :y", Args{":y": "new"}) }
	check := func() *Write { return Check("t", map[string]string{"id": "1"}, "attribute_exists(y)") }
	raw := func() *Write {
		return Raw(types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("t"), Key: id("1")}})
	}
	const asRead = ` if x = "old" as read`
	for name, tt := range map[string]struct {
		writes []*Write
		want   string // the writes as text
		err    error
	}{
		"a write, then a Get":      {[]*Write{update(), got(true, x)}, `update t {"id":"1"} SET y = "new"` + asRead, nil},
		"a Get, then a write":      {[]*Write{got(true, x), update()}, `update t {"id":"1"} SET y = "new"` + asRead, nil},
		"a Get, then a put":        {[]*Write{got(true, x), put()}, `put t {"id":"1","y":"new"}` + asRead, nil},
		"a put, then a Get":        {[]*Write{put(), got(true, x)}, `put t {"id":"1","y":"new"}` + asRead, nil},
		"a Check, then a Get":      {[]*Write{check(), got(true, x)}, `check t {"id":"1"} if (attribute_exists(y)) AND (x = "old") as read`, nil},
		"two Gets":                 {[]*Write{got(true, x), got(true, item.Map{"z": str("1")})}, `check t {"id":"1"} if (x = "old") AND (x = "old") as read`, nil},
		"a write between two Gets": {[]*Write{got(true, x), update(), got(true, x)}, `update t {"id":"1"} SET y = "new" if (x = "old") AND (x = "old") as read`, nil},
		"a Get that found nothing": {[]*Write{put().If("y <> :y", Args{":y": "1"}), got(false, item.Map{"id": nil})}, `put t {"id":"1","y":"new"} if (y <> "1") AND (attribute_not_exists(x)) as read`, nil},
		"another item":             {[]*Write{got(true, x), Delete("t", map[string]string{"id": "2"})}, `check t {"id":"1"}` + asRead + "\n" + `delete t {"id":"2"}`, nil},
		"another put":              {[]*Write{got(true, x), Put("t", map[string]string{"id": "2"})}, `check t {"id":"1"}` + asRead + "\n" + `put t {"id":"2"}`, nil},
		"a put without the key":    {[]*Write{got(true, x), Put("t", map[string]string{"key": "1"})}, `check t {"id":"1"}` + asRead + "\n" + `put t {"key":"1"}`, nil},
		"another table":            {[]*Write{got(true, x), Delete("u", map[string]string{"id": "1"})}, `check t {"id":"1"}` + asRead + "\n" + `delete u {"id":"1"}`, nil},
		"a table by its ARN":       {[]*Write{got(true, x), Delete("arn:aws:dynamodb:eu-central-1:1:table/t", map[string]string{"id": "1"})}, `delete arn:aws:dynamodb:eu-central-1:1:table/t {"id":"1"}` + asRead, nil},
		"two puts that differ":     {[]*Write{put(), Put("t", map[string]string{"id": "1"})}, `put t {"id":"1","y":"new"}` + "\n" + `put t {"id":"1"}`, nil},
		"two puts":                 {[]*Write{put(), put()}, "", store.ErrWrite},
		"two writes":               {[]*Write{update(), put()}, "", store.ErrWrite},
		"a write, then a Check":    {[]*Write{update(), check()}, "", store.ErrWrite},
		"a Raw write, and a Get":   {[]*Write{raw(), got(true, x)}, "", store.ErrWrite},
		"read as two values":       {[]*Write{got(true, x), got(true, item.Map{"x": str("new")})}, "", store.ErrChanged},
		"found once":               {[]*Write{got(true, item.Map{"z": nil}), got(false, item.Map{"id": nil})}, "", store.ErrChanged},
		"a mistaken write":         {[]*Write{Delete("t", nil)}, "", store.ErrWrite},
	} {
		joint, err := joined(all(tt.writes...))
		var texts []string
		for _, w := range joint {
			texts = append(texts, w.String())
		}
		if is := strings.Join(texts, "\n"); is != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, is, tt.want)
		}
	}
}

// A Get that joined a write still tells whether what it read has changed.
func TestJoinedGetKnowsWhatItRead(t *testing.T) {
	t.Parallel()
	joint, err := joined(all(
		Update("t", map[string]string{"id": "1"}, "SET y = :y", Args{":y": "new"}),
		got(true, item.Map{"x": nil}), got(true, item.Map{"z": str("1")}),
	))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		now  item.Map
		want bool
	}{
		"unchanged":          {item.Map{"id": str("1"), "z": str("1"), "other": str("2")}, true},
		"the first changed":  {item.Map{"id": str("1"), "z": str("1"), "x": str("2")}, false},
		"the second changed": {item.Map{"id": str("1"), "z": str("2")}, false},
	} {
		if is := joint[0].still(tt.now); is != tt.want {
			t.Errorf("%s: still as read: %t", name, is)
		}
	}
	joint, err = joined(all(Update("t", map[string]string{"id": "1"}, "SET y = :y", Args{":y": "new"}), got(true, item.Map{"x": nil})))
	if err != nil || joint[0].still(nil) {
		t.Errorf("an item that was found and is gone is as it was read, %v", err)
	}
}

// The service's limits, to the byte: what is over them is refused with a reason, before
// anything is sent.
func TestCheckSizeToTheByte(t *testing.T) {
	t.Parallel()
	sized := func(n int) *Write {
		return &Write{verb: "put", table: "t", item: item.Map{"id": str(strings.Repeat("x", n-2))}}
	}
	several := func(n int, w *Write) (ws []*Write) {
		for range n {
			ws = append(ws, w)
		}
		return ws
	}
	big := strings.Repeat("x", 200<<10)
	raw := Raw(types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String("t"), Key: id(big), UpdateExpression: aws.String("SET y = :y"), ExpressionAttributeValues: item.Map{":y": str(big)},
	}})
	const itemMax, all = 400 << 10, 4 << 20
	for name, tt := range map[string]struct {
		record int // bytes of the record
		mine   []*Write
		fits   bool
	}{
		"nothing":                    {3, nil, true},
		"99 items":                   {3, several(99, sized(3)), true},
		"100 items and the record":   {3, several(100, sized(3)), false},
		"an item":                    {3, several(1, sized(itemMax)), true},
		"an item, a byte more":       {3, several(1, sized(itemMax+1)), false},
		"a Raw update's values":      {3, several(1, raw), false},
		"a key and values":           {3, []*Write{{verb: "update", table: "t", key: id(big), values: item.Map{":y": str(big)}}}, false},
		"a transaction":              {all - 10*itemMax, several(10, sized(itemMax)), true},
		"a transaction, a byte more": {all - 10*itemMax + 1, several(10, sized(itemMax)), false},
	} {
		err := checkSize(item.Map{"pk": str(strings.Repeat("x", tt.record-2))}, tt.mine)
		if (err == nil) != tt.fits || err != nil && !errors.Is(err, store.ErrWrite) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The table of the records is not the user's, by whatever name.
func TestFoldRefusesTheRecordsTable(t *testing.T) {
	t.Parallel()
	s := &Store{table: "arn:aws:dynamodb:eu-central-1:1:table/records"}
	for table, want := range map[string]error{"records": store.ErrWrite, s.table: store.ErrWrite, "mine": nil} {
		if _, err := s.fold(all(Delete(table, map[string]string{"id": "1"}))); !errors.Is(err, want) {
			t.Errorf("%s: %v", table, err)
		}
	}
}

type account struct {
	ID      string `dynamodbav:"id"`
	Plain   int
	Short   int `dynamodbav:",omitempty"`
	Skipped int `dynamodbav:"-"`
	hidden  int
	address                      // its fields are attributes of the item
	*Named  `dynamodbav:"named"` // an attribute of its own
	*Middle
	When time.Time
}

type address struct {
	Street string
	City   string `dynamodbav:"city"`
}

type Named struct{ Inner string }

type Middle struct {
	M    int
	Deep `dynamodbav:"deep"`
}

type Deep struct{ D int }

// The fields of a struct are the attributes that the SDK writes for it: of each the check
// compares the absence.
func TestFieldsAreWhatTheSDKWrites(t *testing.T) {
	t.Parallel()
	v := account{ID: "1", Plain: 1, Short: 1, Skipped: 1, hidden: 1, address: address{"a", "b"}, Named: &Named{"c"}, Middle: &Middle{M: 1}, When: time.Unix(0, 0)}
	it, err := attributevalue.MarshalMap(v)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for name := range it {
		want = append(want, name)
	}
	slices.Sort(want)
	p := &v
	for _, typ := range []reflect.Type{reflect.TypeOf(v), reflect.TypeOf(p), reflect.TypeOf(&p)} {
		got := fields(typ)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", typ, got, want)
		}
	}
	for _, none := range []any{nil, map[string]int{}, 1} {
		if got := fields(reflect.TypeOf(none)); got != nil {
			t.Errorf("%T: %q, want none", none, got)
		}
	}
}

type deniedError struct{}

func (*deniedError) Error() string { return "denied" }

func (*deniedError) ErrorCode() string { return "AccessDeniedException" }

func (*deniedError) ErrorMessage() string { return "" }

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
