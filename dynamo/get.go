package dynamo

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/item"
)

// Getter is the part of *dynamodb.Client that [Get] uses.
type Getter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// maxRead is how many attributes a check can compare. Each attribute needs about two of the 300
// operators that DynamoDB allows in an expression: the comparison and an AND.
const maxRead = 140

// Get reads an item with strong consistency. The parameter out is a pointer to the
// struct or map that Get fills in. The phase commits only if the item is unchanged at
// the commit. If the item has changed, an [idem.Atomic] runs again with fresh reads. So
// if two phases each write what the other has read, at least one of them must read
// again before it commits.
//
// If there is no item, found is false, out is unchanged, and the phase commits only if
// the item is still missing.
//
// By default, the commit compares all attributes that were read. If the item lacked a
// field of the struct out, the commit also checks that the field is still missing. If
// the parameter on lists names of attributes, for example of a version, the commit
// compares only these attributes. If there is an item, but neither the item nor the
// struct has an attribute of a listed name, Get returns an error. At most 140
// attributes can be compared, so for an item with more attributes pass at most 140
// names.
//
// db is the client or a fake. key is a struct or map of the key's attributes.
func Get(ctx context.Context, tx *idem.Tx, db Getter, table string, key, out any, on ...string) (found bool, err error) {
	k, err := marshalItem(key)
	if err != nil {
		return false, fmt.Errorf("dynamo: get %s: key: %w", table, err)
	}
	res, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: k, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return false, fmt.Errorf("dynamo: get %s: %w", table, err)
	}
	read := make(item.Map)
	switch {
	case len(res.Item) == 0:
		for name := range k {
			read[name] = nil
		}
	case len(on) > 0:
		known := fields(reflect.TypeOf(out))
		for _, name := range on {
			if _, there := res.Item[name]; !there && known != nil && !slices.Contains(known, name) {
				return false, fmt.Errorf("dynamo: get %s: neither the item nor a %T has an attribute %q: the check would compare nothing", table, out, name)
			}
			read[name] = res.Item[name]
		}
	default:
		for name, v := range res.Item {
			if _, isKey := k[name]; !isKey {
				read[name] = v
			}
		}
		for _, name := range fields(reflect.TypeOf(out)) {
			if _, there := res.Item[name]; !there {
				read[name] = nil
			}
		}
	}
	if len(read) > maxRead {
		return false, fmt.Errorf("dynamo: get %s: %d attributes can't be compared, at most %d: name those that matter", table, len(read), maxRead)
	}
	if len(res.Item) > 0 {
		if err := attributevalue.UnmarshalMap(res.Item, out); err != nil {
			return false, fmt.Errorf("dynamo: get %s: %w", table, err)
		}
	}
	tx.Write(asRead(table, k, read, len(res.Item) > 0))
	return len(res.Item) > 0, nil
}

// asRead returns the check that an item is unchanged. In the map read, the value of a missing
// attribute is nil.
func asRead(table string, key, read item.Map, found bool) *Write {
	w := &Write{verb: "check", table: table, key: key, read: read, found: found, names: make(map[string]string), values: make(item.Map)}
	// The placeholders are unique, since the check may be merged into another write.
	prefix := "r" + strconv.FormatInt(reads.Add(1), 36) + "_"
	clause := func(format, name string) {
		n := prefix + strconv.Itoa(len(w.names))
		w.names["#"+n] = name
		if v := read[name]; v != nil {
			w.values[":"+n] = v
		}
		c := fmt.Sprintf(format, "#"+n, ":"+n)
		if w.cond != "" {
			c = w.cond + " AND " + c
		}
		w.cond = c
	}
	values := slices.ContainsFunc(slices.Collect(maps.Values(read)), func(v item.Value) bool { return v != nil })
	if found && !values {
		for name := range key { // if there are no values to compare, check that the item exists
			clause("attribute_exists(%[1]s)", name)
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		if read[name] == nil {
			clause("attribute_not_exists(%[1]s)", name)
			continue
		}
		clause("%[1]s = %[2]s", name)
	}
	return w
}

var reads atomic.Int64 // number of checks made by Get

// fields returns the attribute names that the SDK's package attributevalue gives to a struct's
// fields.
func fields(t reflect.Type) []string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("dynamodbav"), ",")
		switch {
		case !f.IsExported() || tag == "-" || f.Anonymous && tag == "" || tagged(t, f.Index):
		case tag != "":
			names = append(names, tag)
		default:
			names = append(names, f.Name)
		}
	}
	return names
}

// tagged reports whether a field belongs to an embedded struct whose tag has a name.
// The item has an attribute for that struct, and none for the field.
func tagged(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := t.Field(i)
		if tag, _, _ := strings.Cut(f.Tag.Get("dynamodbav"), ","); tag != "" {
			return true
		}
		if t = f.Type; t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return false
}

// Write.still reports whether the attributes that Get read are unchanged in now, the
// item as it is stored.
func (w *Write) still(now item.Map) bool {
	for name, v := range w.read {
		if !sameValue(now[name], v) {
			return false
		}
	}
	return !w.found || len(now) > 0
}
