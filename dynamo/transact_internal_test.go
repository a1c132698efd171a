package dynamo

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
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

// Each write asks for the item that refuses it, and sends no empty map.
func TestTransactItem(t *testing.T) {
	t.Parallel()
	key := map[string]string{"id": "1"}
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	cond, names, values := aws.String("#x = :x"), map[string]string{"#x": "x"}, item.Map{":x": str("1")}
	args := Args{"#x": "x", ":x": "1"}
	raw := types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("t"), Key: id("1")}}
	for _, tt := range []struct {
		w    *Write
		want types.TransactWriteItem
	}{
		{Put("t", key), types.TransactWriteItem{Put: &types.Put{TableName: aws.String("t"), Item: id("1"), ReturnValuesOnConditionCheckFailure: old}}},
		{Put("t", key).If(*cond, args), types.TransactWriteItem{Put: &types.Put{
			TableName: aws.String("t"), Item: id("1"), ConditionExpression: cond, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: old,
		}}},
		{Update("t", key, "SET #x = :x", args), types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String("t"), Key: id("1"), UpdateExpression: aws.String("SET #x = :x"), ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: old,
		}}},
		{Delete("t", key).If(*cond, args), types.TransactWriteItem{Delete: &types.Delete{
			TableName: aws.String("t"), Key: id("1"), ConditionExpression: cond, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: old,
		}}},
		{Check("t", key, *cond, args), types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String("t"), Key: id("1"), ConditionExpression: cond, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: old,
		}}},
		{&Write{verb: "put", table: "t", item: id("1"), values: item.Map{}}, types.TransactWriteItem{Put: &types.Put{TableName: aws.String("t"), Item: id("1"), ReturnValuesOnConditionCheckFailure: old}}},
		{Raw(raw), raw},
	} {
		if err := tt.w.Err(); err != nil {
			t.Error(err)
		}
		if is := tt.w.transactItem(); !reflect.DeepEqual(is, tt.want) {
			t.Errorf("%v is sent as %+v, want %+v", tt.w, is, tt.want)
		}
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

// refusing is a table that refuses transactions.
type refusing struct {
	API
	err error
}

func (r refusing) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return nil, r.err
}

// Of several reasons for a refusal, the one counts that the caller can act upon: the
// record first, then what passes by itself, then the user's conditions.
func TestWhyATransactionWasRefused(t *testing.T) {
	t.Parallel()
	reason := func(code string) types.CancellationReason { return types.CancellationReason{Code: aws.String(code)} }
	const failed = "ConditionalCheckFailed"
	none, conditional := reason("None"), reason(failed)
	withRecord := conditional
	withRecord.Item = itemOf(t, nil)
	tooLarge := reason("ValidationError")
	tooLarge.Message = aws.String("Item size to update has exceeded the maximum allowed size")
	changed := conditional
	changed.Item = item.Map{"x": str("new")}
	same := conditional
	same.Item = item.Map{"x": str("old")}
	cancelled := func(rs ...types.CancellationReason) error {
		return &types.TransactionCanceledException{CancellationReasons: rs}
	}
	for name, tt := range map[string]struct {
		err    error
		record string // the owner of the record that refused; "-": there is none
		want   error
	}{
		"the record":                     {cancelled(withRecord, conditional, reason("TransactionConflict")), "b", nil},
		"the record, which is gone":      {cancelled(conditional, none, none), "-", nil},
		"a conflict":                     {cancelled(none, reason("TransactionConflict"), none), "", store.ErrConflict},
		"a conflict, of the record":      {cancelled(reason("TransactionConflict"), none, none), "", store.ErrConflict},
		"throttled":                      {cancelled(none, none, reason("ThrottlingError")), "", store.ErrUnknown},
		"no units":                       {cancelled(none, none, reason("ProvisionedThroughputExceeded")), "", store.ErrUnknown},
		"a double":                       {cancelled(none, none, reason("DuplicateItem")), "", store.ErrConflict},
		"a condition":                    {cancelled(none, conditional, none), "", store.ErrCondition},
		"a condition, and no codes":      {cancelled(types.CancellationReason{}, conditional, types.CancellationReason{}), "", store.ErrCondition},
		"a condition, and a conflict":    {cancelled(none, conditional, reason("TransactionConflict")), "", store.ErrConflict},
		"what was read has changed":      {cancelled(none, none, changed), "", store.ErrChanged},
		"what was read, and a condition": {cancelled(none, conditional, changed), "", store.ErrChanged},
		"another condition of that":      {cancelled(none, none, same), "", store.ErrCondition},
		"the record is too large":        {cancelled(tooLarge, none, none), "", store.ErrTooLarge},
		"an item is too large":           {cancelled(none, tooLarge, none), "", store.ErrWrite},
		"the record is invalid":          {cancelled(reason("ValidationError"), none, none), "", store.ErrWrite},
		"no reason":                      {cancelled(none, none, none), "", store.ErrConflict},
		"too few reasons":                {cancelled(conditional), "", store.ErrUnknown},
		"no answer":                      {errors.New("connection reset"), "", store.ErrUnknown},
	} {
		s := &Store{api: refusing{err: tt.err}, table: "t"}
		mine := []*Write{Delete("mine", map[string]string{"id": "2"}), {verb: "check", table: "mine", key: id("1"), read: item.Map{"x": str("old")}, found: true}}
		held, err := s.transact(t.Context(), make([]types.TransactWriteItem, 1), nil, mine)
		owner := ""
		if held != nil {
			owner = "-"
			if held.State != store.None {
				owner = held.Owner
			}
		}
		if owner != tt.record || !errors.Is(err, tt.want) {
			t.Errorf("%s: %q, %v, want %q, %v", name, owner, err, tt.record, tt.want)
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
