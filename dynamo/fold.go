package dynamo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

// Store.fold combines the user's writes on the same item into one write, as DynamoDB
// requires. If a phase reads an item with Get and also writes it, the write's condition
// includes Get's check that the item is unchanged.
func (s *Store) fold(writes []store.Write) ([]*Write, error) {
	for _, one := range writes {
		if w, ok := one.(*Write); ok && plainName(w.table) == plainName(s.table) {
			return nil, fmt.Errorf("dynamo: %w: %s on %s, the table of the records themselves: keep your items in another",
				store.ErrWrite, w.verb, w.table)
		}
	}
	return joined(writes)
}

// CheckCommit implements [store.CommitChecker]: without a call to DynamoDB, it finds
// mistakes in writes that commit together. CheckCommit finds two puts on the same item
// only if the puts are equal, because a put doesn't say which attributes are the key.
func (w *Write) CheckCommit(all []store.Write) error {
	writes, err := joined(all)
	if err != nil {
		return err
	}
	return checkSize(nil, writes)
}

// joined returns one write for each item, with the writes on the same item merged.
func joined(writes []store.Write) ([]*Write, error) {
	out := make([]*Write, 0, len(writes))
	for _, one := range writes {
		w, ok := one.(*Write)
		switch {
		case !ok:
			return nil, fmt.Errorf("dynamo: %w: a %T is not of this package", store.ErrWrite, one)
		case w.Err() != nil:
			return nil, fmt.Errorf("%w: %w", store.ErrWrite, w.Err())
		}
		i := slices.IndexFunc(out, func(o *Write) bool { return sameItem(o, w) })
		if i < 0 {
			out = append(out, w)
			continue
		}
		folded, err := merge(out[i], w)
		if err != nil {
			return nil, err
		}
		out[i] = folded
	}
	return out, nil
}

// plainName returns the name of a table. The parameter table is the table's name or ARN.
func plainName(table string) string {
	if _, name, ok := strings.Cut(table, ":table/"); ok {
		return name
	}
	return table
}

// sameItem reports whether a and b write the same item. A put doesn't say which of its attributes
// are the key, so sameItem looks in the put for the other write's key.
func sameItem(a, b *Write) bool {
	switch {
	case plainName(a.table) != plainName(b.table):
		return false
	case a.key != nil && b.key != nil:
		return sameValue(&types.AttributeValueMemberM{Value: a.key}, &types.AttributeValueMemberM{Value: b.key})
	case a.key != nil:
		return contains(b.item, a.key)
	case b.key != nil:
		return contains(a.item, b.key)
	default: // two puts; if they are unequal but on the same item, the service refuses them
		return sameValue(&types.AttributeValueMemberM{Value: a.item}, &types.AttributeValueMemberM{Value: b.item})
	}
}

func contains(it, key item.Map) bool {
	for name, v := range key {
		if !sameValue(it[name], v) {
			return false
		}
	}
	return true
}

// merge combines two writes on the same item. One of the two must be the check of a Get: any other
// two writes on one item are a mistake.
func merge(a, b *Write) (*Write, error) {
	if a.read != nil && a.verb == "check" {
		a, b = b, a // from here on, b is the check
	}
	switch {
	case b.read == nil:
		return nil, fmt.Errorf("dynamo: %w: two writes on one item of %s: join them", store.ErrWrite, a.table)
	case a.raw != nil:
		return nil, fmt.Errorf("dynamo: %w: a Raw write on an item of %s that was read with Get: build it with Put, Update or Delete",
			store.ErrWrite, a.table)
	}
	if a.read != nil && (a.found != b.found || disagree(a.read, b.read)) {
		return nil, fmt.Errorf("dynamo: %w: an item of %s, between two reads", store.ErrChanged, a.table)
	}
	w := *a
	w.cond = both(a.cond, b.cond)
	w.names, w.values, w.read = maps.Clone(b.names), maps.Clone(b.values), maps.Clone(b.read)
	maps.Copy(w.names, a.names) // each Get has its own placeholders, so nothing collides
	if w.values == nil {
		w.values = make(item.Map, len(a.values))
	}
	maps.Copy(w.values, a.values)
	maps.Copy(w.read, a.read)
	w.found = b.found
	return &w, nil
}

// disagree reports whether two reads found different values of an attribute.
func disagree(a, b item.Map) bool {
	for name, v := range a {
		if other, there := b[name]; there && !sameValue(v, other) {
			return true
		}
	}
	return false
}
