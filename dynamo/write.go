package dynamo

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

// Args are the placeholders of an expression: "#n" stands for the name of an attribute (a
// string), ":v" for a value of any type that DynamoDB can store.
type Args = map[string]any

// Write is a write by the program, for [idem.Tx.Write]. A Write commits with the phase, or not at
// all. Make a Write with [Put], [Update], [Delete], [Check] or [Raw]. A mistake in a Write fails
// the phase before anything is sent; Err returns the mistake.
//
// A commit refuses writes to the store's own table, and more than one write to an item.
type Write struct {
	verb   string // put, update, delete, check
	table  string
	item   item.Map // of a put
	key    item.Map // of an update, delete or check
	update string
	cond   string
	names  map[string]string
	values item.Map
	read   item.Map // the attributes that Get read, with nil for a missing one; they must be unchanged at the commit
	found  bool     // whether Get found an item
	raw    *types.TransactWriteItem
	err    error
}

var _ store.CommitChecker = (*Write)(nil)

// Put writes the whole item v, a struct or map that DynamoDB can store.
func Put(table string, v any) *Write {
	w := &Write{verb: "put", table: table}
	w.item, w.err = marshalItem(v)
	return w
}

// Update applies the update expression expr to the item with the given key. key is a struct or map
// that has only the key's attributes.
func Update(table string, key any, expr string, args ...Args) *Write {
	w := &Write{verb: "update", table: table, update: expr}
	w.key, w.err = marshalItem(key)
	if expr == "" {
		w.fail(errors.New("the update expression is empty"))
	}
	w.args(args)
	return w
}

// Delete deletes the item with the given key.
func Delete(table string, key any) *Write {
	w := &Write{verb: "delete", table: table}
	w.key, w.err = marshalItem(key)
	return w
}

// Check doesn't write, but lets the phase commit only if cond is true of the item with
// the given key. If cond is false, the phase fails with [store.ErrCondition]. Items
// read with [Get] need no Check, because Get itself makes the phase check that they are
// unchanged.
func Check(table string, key any, cond string, args ...Args) *Write {
	w := &Write{verb: "check", table: table}
	w.key, w.err = marshalItem(key)
	if cond == "" {
		w.fail(errors.New("the condition is empty"))
	}
	return w.If(cond, args...)
}

// Raw takes a write made by the SDK's expression builder and sends it unchanged. A phase can't
// combine a raw write with a [Get] of the same item ([store.ErrWrite]).
func Raw(t types.TransactWriteItem) *Write {
	w := &Write{raw: &t}
	switch {
	case t.Put != nil:
		w.verb, w.table, w.item, w.cond = "put", aws.ToString(t.Put.TableName), t.Put.Item, aws.ToString(t.Put.ConditionExpression)
	case t.Update != nil:
		w.verb, w.table, w.key, w.update = "update", aws.ToString(t.Update.TableName), t.Update.Key, aws.ToString(t.Update.UpdateExpression)
	case t.Delete != nil:
		w.verb, w.table, w.key = "delete", aws.ToString(t.Delete.TableName), t.Delete.Key
	case t.ConditionCheck != nil:
		w.verb, w.table, w.key = "check", aws.ToString(t.ConditionCheck.TableName), t.ConditionCheck.Key
	default:
		w.err = errors.New("dynamo: Raw: the item is empty")
	}
	return w
}

// If adds a condition to the write and returns the write. All added conditions must be true.
// Otherwise no part of the phase commits, and the phase fails with [store.ErrCondition].
func (w *Write) If(cond string, args ...Args) *Write {
	if w.raw != nil {
		w.fail(errors.New("a Raw write takes no further condition"))
		return w
	}
	w.cond = both(w.cond, cond)
	w.args(args)
	return w
}

func both(a, b string) string {
	if a == "" {
		return b
	}
	return "(" + a + ") AND (" + b + ")"
}

func (w *Write) args(all []Args) {
	for _, args := range all {
		for name, v := range args {
			w.arg(name, v)
		}
	}
}

func (w *Write) arg(name string, v any) {
	switch s, isString := v.(string); {
	case strings.HasPrefix(name, "#") && isString:
		if old, ok := w.names[name]; ok && old != s {
			w.fail(fmt.Errorf("%s stands for two attributes", name))
		}
		if w.names == nil {
			w.names = make(map[string]string)
		}
		w.names[name] = s
	case strings.HasPrefix(name, ":"):
		av, err := attributevalue.Marshal(v)
		if err != nil {
			w.fail(fmt.Errorf("%s: %w", name, err))
		}
		if old, ok := w.values[name]; ok && !sameValue(old, av) {
			w.fail(fmt.Errorf("%s stands for two values", name))
		}
		if w.values == nil {
			w.values = make(item.Map)
		}
		w.values[name] = av
	default:
		w.fail(fmt.Errorf("placeholder %q: \"#name\" with the name of an attribute, or \":value\" with a value", name))
	}
}

func (w *Write) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// marshalItem converts v to an item. MarshalMap silently makes an empty item of some
// values; marshalItem returns an error instead.
func marshalItem(v any) (item.Map, error) {
	it, err := attributevalue.MarshalMap(v)
	switch {
	case err != nil:
		return nil, err
	case len(it) == 0:
		return nil, fmt.Errorf("%T makes an empty item: pass a struct or a map with attributes", v)
	}
	return it, nil
}

// Err implements [store.Write]: it returns the first mistake in building the write.
func (w *Write) Err() error {
	if w.err == nil && w.table == "" {
		w.err = errors.New("the table is empty")
	}
	err := w.err
	if err == nil {
		err = w.placeholders()
	}
	if err != nil {
		return fmt.Errorf("dynamo: %s %s: %w", w.verb, w.table, err)
	}
	return nil
}

// Write.placeholders returns an error if a placeholder has no value, or if no
// expression uses it, because DynamoDB would refuse the write.
func (w *Write) placeholders() error {
	exprs, names, values := []string{w.update, w.cond}, w.names, w.values
	if w.raw != nil {
		exprs, names, values = rawParts(w.raw)
	}
	used := make(map[string]bool)
	for _, e := range exprs {
		for i := strings.IndexAny(e, "#:"); i >= 0; i = strings.IndexAny(e, "#:") {
			end := i + 1
			for end < len(e) && inName(e[end]) {
				end++
			}
			used[e[i:end]], e = true, e[end:]
		}
	}
	for _, p := range slices.Sorted(maps.Keys(used)) {
		if _, name := names[p]; !name && values[p] == nil {
			return fmt.Errorf("placeholder %q stands for nothing: say what in Args", p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(names)) {
		if !used[p] {
			return fmt.Errorf("placeholder %q is in no expression", p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(values)) {
		if !used[p] {
			return fmt.Errorf("placeholder %q is in no expression", p)
		}
	}
	return nil
}

func inName(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func rawParts(t *types.TransactWriteItem) (exprs []string, names map[string]string, values item.Map) {
	switch {
	case t.Put != nil:
		return []string{aws.ToString(t.Put.ConditionExpression)}, t.Put.ExpressionAttributeNames, t.Put.ExpressionAttributeValues
	case t.Update != nil:
		return []string{aws.ToString(t.Update.UpdateExpression), aws.ToString(t.Update.ConditionExpression)},
			t.Update.ExpressionAttributeNames, t.Update.ExpressionAttributeValues
	case t.Delete != nil:
		return []string{aws.ToString(t.Delete.ConditionExpression)}, t.Delete.ExpressionAttributeNames, t.Delete.ExpressionAttributeValues
	default:
		c := t.ConditionCheck
		return []string{aws.ToString(c.ConditionExpression)}, c.ExpressionAttributeNames, c.ExpressionAttributeValues
	}
}

// String implements [store.Write]. The string has the verb, the table, the item or key,
// and the expressions with their placeholders replaced by names and values. Attributes
// are in the order of their names. The string of a [Raw] write keeps the placeholders,
// and has no condition unless the write is a put.
func (w *Write) String() string {
	it := w.item
	if it == nil {
		it = w.key
	}
	parts := []string{w.verb, w.table, text(&types.AttributeValueMemberM{Value: it})}
	for _, expr := range []string{w.update, prefixed("if ", w.cond)} {
		if expr != "" {
			parts = append(parts, w.filled(expr))
		}
	}
	if w.read != nil {
		parts = append(parts, "as read")
	}
	return strings.Join(parts, " ")
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// Write.filled replaces placeholders, the longest first, because :a is the start of
// :ab.
func (w *Write) filled(expr string) string {
	byLength := func(names []string) []string {
		sort.Slice(names, func(i, j int) bool { return len(names[i]) > len(names[j]) })
		return names
	}
	pairs := make([]string, 0, 2*(len(w.names)+len(w.values)))
	for _, p := range byLength(slices.Sorted(maps.Keys(w.names))) {
		pairs = append(pairs, p, w.names[p])
	}
	for _, p := range byLength(slices.Sorted(maps.Keys(w.values))) {
		pairs = append(pairs, p, text(w.values[p]))
	}
	return strings.NewReplacer(pairs...).Replace(expr)
}

// text returns a value in a form similar to JSON.
func text(v item.Value) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return fmt.Sprintf("%q", v.Value)
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	case *types.AttributeValueMemberNULL:
		return "null"
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("%d bytes", len(v.Value))
	case *types.AttributeValueMemberL:
		parts := make([]string, len(v.Value))
		for i, e := range v.Value {
			parts[i] = text(e)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *types.AttributeValueMemberM:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			parts = append(parts, fmt.Sprintf("%q:%s", name, text(v.Value[name])))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case *types.AttributeValueMemberSS:
		return fmt.Sprintf("%q", v.Value)
	case *types.AttributeValueMemberNS:
		return fmt.Sprint(v.Value)
	default:
		return fmt.Sprintf("%T", v)
	}
}

func sameValue(a, b item.Value) bool { return reflect.DeepEqual(a, b) }
