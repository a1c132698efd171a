package fakedynamo

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/internal/base/itemsize"
)

// DB is a database. The first write to a table creates the table. Methods are not safe
// for concurrent use.
type DB struct {
	// Now is the clock for Change.Time. Default: time.Now.
	Now func() time.Time
	// Changed is called for each change. May be nil.
	Changed func(Change)

	tables map[string]*table
}

// Change is a change of an item. Old is nil if the item is new, and New is nil if it was deleted.
type Change struct {
	Table    string
	Time     time.Time
	Old, New Item
}

// table keeps items in the order of their first writes, so that the order is the same
// in each run of a test. DynamoDB orders items by hashes of their keys, and many tests
// use random keys.
type table struct {
	items map[string]Item
	place map[string]int  // each key's position in order; a position never changes
	order []string        // all keys that were ever written
	index map[string]bool // keys of the items in the index that Query reads
}

// keyName is the name of every table's key attribute.
const keyName = "pk"

// maxItem is the maximum size of an item, in bytes.
const maxItem = 400 << 10

func (db *DB) table(name string) *table {
	if db.tables == nil {
		db.tables = make(map[string]*table)
	}
	t := db.tables[name]
	if t == nil {
		t = &table{items: make(map[string]Item), place: make(map[string]int), index: make(map[string]bool)}
		db.tables[name] = t
	}
	return t
}

// Items returns the items of a table, in the order of their first writes.
func (db *DB) Items(name string) (all []Item) {
	t := db.table(name)
	for _, pk := range t.order {
		if it := t.items[pk]; it != nil {
			all = append(all, it)
		}
	}
	return all
}

// Item returns an item, or nil if there is none.
func (db *DB) Item(name, pk string) Item { return db.table(name).items[pk] }

// Last returns the key that was first written most recently, even if its item is
// deleted by now. It returns "" if the table never had an item.
func (db *DB) Last(name string) string {
	order := db.table(name).order
	if len(order) == 0 {
		return ""
	}
	return order[len(order)-1]
}

// Expire deletes an item, as TTL does, and reports whether the item existed.
func (db *DB) Expire(name, pk string) bool {
	_, there := db.table(name).items[pk]
	db.put(name, pk, nil)
	return there
}

func (db *DB) put(name, pk string, next Item) {
	t := db.table(name)
	old := t.items[pk]
	if next[indexKey] != nil && next[indexSort] != nil {
		t.index[pk] = true
	} else {
		delete(t.index, pk)
	}
	if next == nil {
		delete(t.items, pk)
	} else {
		t.items[pk] = next
		if _, known := t.place[pk]; !known {
			t.place[pk] = len(t.order)
			t.order = append(t.order, pk)
		}
	}
	if db.Changed == nil || reflect.DeepEqual(old, next) || old == nil && next == nil {
		return
	}
	now := time.Now
	if db.Now != nil {
		now = db.Now
	}
	db.Changed(Change{name, now(), old, next})
}

// write is a write of one item, alone or in a transaction.
type write struct {
	table  *string
	item   Item // the item that a put writes
	key    Item // the item's key if the write isn't a put
	update *string
	remove bool

	cond   *string
	names  map[string]string
	values Item
	allOld bool
}

// DB.plan evaluates a write, but doesn't apply it. The result refused is true if the
// write's condition doesn't hold.
func (db *DB) plan(w write) (pk string, old, next Item, refused bool, err error) {
	t := db.table(aws.ToString(w.table))
	from := w.key
	if w.item != nil {
		from = w.item
	}
	key, ok := from[keyName].(*types.AttributeValueMemberS)
	if !ok || key.Value == "" || w.item == nil && len(w.key) != 1 {
		return "", nil, nil, false, invalid("The provided key element does not match the schema")
	}
	pk = key.Value
	old = t.items[pk]
	s := &scope{it: old, names: w.names, values: w.values}
	var used []string
	if w.cond != nil {
		p := parseCondition(*w.cond)
		if p.err != nil {
			return pk, nil, nil, false, p.err
		}
		used = p.used
		refused = !s.holds(p.cond)
	}
	next = old
	switch {
	case w.item != nil:
		next = w.item
	case w.remove:
		next = nil
	case w.update != nil:
		p := parseUpdate(*w.update)
		if p.err != nil {
			return pk, nil, nil, false, p.err
		}
		used = slices.Concat(used, p.used)
		if refused || s.err != nil {
			break
		}
		if old == nil {
			s.it = Item{keyName: key}
		}
		next = s.apply(p.upd)
	}
	switch {
	case s.err != nil:
		return pk, nil, nil, false, s.err
	case refused:
		return pk, old, nil, true, unused(used, w.names, w.values)
	case itemsize.Of(next) > maxItem:
		return pk, nil, nil, false, invalid("Item size has exceeded the maximum allowed size")
	}
	return pk, old, next, false, unused(used, w.names, w.values)
}

// The function unused returns an error if there is a placeholder that no expression uses.
func unused(used []string, names map[string]string, values Item) error {
	for name := range names {
		if !slices.Contains(used, name) {
			return invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {" + name + "}")
		}
	}
	for name := range values {
		if !slices.Contains(used, name) {
			return invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {" + name + "}")
		}
	}
	return nil
}

func invalid(text string) error {
	return &smithy.GenericAPIError{Code: "ValidationException", Message: text, Fault: smithy.FaultClient}
}

// DB.one carries out a single write.
func (db *DB) one(w write) (next Item, err error) {
	pk, old, next, refused, err := db.plan(w)
	if err != nil {
		return nil, err
	}
	if refused {
		failed := &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed")}
		if w.allOld {
			failed.Item = old
		}
		return nil, failed
	}
	db.put(aws.ToString(w.table), pk, next)
	return next, nil
}

// DB.all carries out a transaction.
func (db *DB) all(writes []write) error {
	type planned struct {
		table, pk string
		next      Item
	}
	var plans []planned
	reasons := make([]types.CancellationReason, len(writes))
	cancelled := false
	seen := make(map[string]bool)
	for i, w := range writes {
		pk, old, next, refused, err := db.plan(w)
		if err != nil {
			return err
		}
		name := aws.ToString(w.table)
		if seen[name+"\x00"+pk] {
			return invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[name+"\x00"+pk] = true
		reasons[i].Code = aws.String("None")
		if refused {
			cancelled = true
			reasons[i].Code, reasons[i].Message = aws.String("ConditionalCheckFailed"), aws.String("The conditional request failed")
			if w.allOld {
				reasons[i].Item = old
			}
		}
		if w.item != nil || w.update != nil || w.remove {
			plans = append(plans, planned{name, pk, next})
		}
	}
	if cancelled {
		return &types.TransactionCanceledException{
			Message:             aws.String(fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons %d", len(writes))),
			CancellationReasons: reasons,
		}
	}
	for _, p := range plans {
		db.put(p.table, p.pk, p.next)
	}
	return nil
}
