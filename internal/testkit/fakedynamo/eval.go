package fakedynamo

import (
	"bytes"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type (
	// Item is an item of a table. A write replaces the stored item, and never changes it in place.
	Item  = map[string]types.AttributeValue
	value = types.AttributeValue
)

// scope holds what an expression refers to: an item, and the names and values that the
// expression's placeholders stand for.
type scope struct {
	it     Item
	names  map[string]string
	values Item
	err    error
}

func (s *scope) fail(text string) {
	if s.err == nil {
		s.err = invalid(text)
	}
}

func (s *scope) name(part string) string {
	if part[0] != '#' {
		return part
	}
	name, ok := s.names[part]
	if !ok {
		s.fail("An expression attribute name used in the document path is not defined; attribute name: " + part)
	}
	return name
}

// scope.at returns the value at a path in the item, or nil if there is none.
func (s *scope) at(path []string) value {
	var v value
	for i, part := range path {
		switch in := v.(type) {
		case nil:
			if i > 0 {
				return nil
			}
			v = s.it[s.name(part)]
		case *types.AttributeValueMemberM:
			v = in.Value[s.name(part)]
		case *types.AttributeValueMemberL:
			n, err := strconv.Atoi(strings.TrimPrefix(part, "["))
			if err != nil || n >= len(in.Value) {
				return nil
			}
			v = in.Value[n]
		default:
			return nil
		}
	}
	return v
}

// scope.value returns the value of an operand, or nil if there is none.
func (s *scope) value(o operand) value {
	switch {
	case o.value != "":
		v, ok := s.values[o.value]
		if !ok {
			s.fail("An expression attribute value used in expression is not defined; attribute value: " + o.value)
		}
		return v
	case o.fn == "":
		return s.at(o.path)
	case o.fn == "size":
		return size(s.value(o.args[0]))
	case o.fn == "if_not_exists":
		if v := s.at(o.args[0].path); v != nil {
			return v
		}
		return s.value(o.args[1])
	case o.fn == "list_append":
		a, okA := s.value(o.args[0]).(*types.AttributeValueMemberL)
		b, okB := s.value(o.args[1]).(*types.AttributeValueMemberL)
		if !okA || !okB {
			s.fail("An operand in the update expression has an incorrect data type")
			return nil
		}
		return &types.AttributeValueMemberL{Value: slices.Concat(a.Value, b.Value)}
	default:
		return s.sum(o)
	}
}

func (s *scope) sum(o operand) value {
	a, okA := number(s.value(o.args[0]))
	b, okB := number(s.value(o.args[1]))
	if !okA || !okB {
		s.fail("An operand in the update expression has an incorrect data type")
		return nil
	}
	if o.fn == "-" {
		b.Neg(b)
	}
	return &types.AttributeValueMemberN{Value: a.Add(a, b).RatString()}
}

func number(v value) (*big.Rat, bool) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(n.Value)
}

func size(v value) value {
	var n int
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		n = len(v.Value)
	case *types.AttributeValueMemberB:
		n = len(v.Value)
	case *types.AttributeValueMemberL:
		n = len(v.Value)
	case *types.AttributeValueMemberM:
		n = len(v.Value)
	default:
		return nil
	}
	return &types.AttributeValueMemberN{Value: big.NewInt(int64(n)).String()}
}

func (s *scope) holds(c *condition) bool {
	switch c.op {
	case "AND":
		return s.holds(c.subs[0]) && s.holds(c.subs[1])
	case "OR":
		return s.holds(c.subs[0]) || s.holds(c.subs[1])
	case "NOT":
		return !s.holds(c.subs[0])
	case "attribute_exists":
		return s.at(c.args[0].path) != nil
	case "attribute_not_exists":
		return s.at(c.args[0].path) == nil
	}
	vals := make([]value, 0, 3)
	if len(c.args) > cap(vals) {
		vals = make([]value, 0, len(c.args))
	}
	vals = vals[:len(c.args)]
	for i, a := range c.args {
		if vals[i] = s.value(a); vals[i] == nil {
			// if an attribute is missing, <> is true, and every other comparison is false
			return c.op == "<>"
		}
	}
	switch c.op {
	case "=":
		return same(vals[0], vals[1])
	case "<>":
		return !same(vals[0], vals[1])
	case "IN":
		return slices.ContainsFunc(vals[1:], func(v value) bool { return same(vals[0], v) })
	case "begins_with":
		a, okA := vals[0].(*types.AttributeValueMemberS)
		b, okB := vals[1].(*types.AttributeValueMemberS)
		return okA && okB && strings.HasPrefix(a.Value, b.Value)
	case "contains":
		return contains(vals[0], vals[1])
	case "BETWEEN":
		low, ok1 := order(vals[0], vals[1])
		high, ok2 := order(vals[0], vals[2])
		return ok1 && ok2 && low >= 0 && high <= 0
	}
	n, ok := order(vals[0], vals[1])
	switch {
	case !ok:
		return false
	case c.op == "<":
		return n < 0
	case c.op == "<=":
		return n <= 0
	case c.op == ">":
		return n > 0
	case c.op == ">=":
		return n >= 0
	}
	s.fail("this package has no " + c.op)
	return false
}

// contains reports whether the text a contains the text b, or whether the list a has the element b.
func contains(a, b value) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		part, ok := b.(*types.AttributeValueMemberS)
		return ok && strings.Contains(a.Value, part.Value)
	case *types.AttributeValueMemberL:
		return slices.ContainsFunc(a.Value, func(v value) bool { return same(v, b) })
	}
	return false
}

func same(a, b value) bool {
	if n, ok := order(a, b); ok {
		return n == 0
	}
	return reflect.DeepEqual(a, b)
}

// order compares two strings, two numbers or two binaries. It returns false for other operands.
func order(a, b value) (int, bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, ok := b.(*types.AttributeValueMemberS); ok {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberB:
		if b, ok := b.(*types.AttributeValueMemberB); ok {
			return bytes.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if other, ok := b.(*types.AttributeValueMemberN); ok {
			if a.Value == other.Value {
				return 0, true
			}
			x, ok1 := number(a)
			y, ok2 := number(b)
			if ok1 && ok2 {
				return x.Cmp(y), true
			}
		}
	}
	return 0, false
}

// scope.apply returns the item after an update. The right side of an assignment refers
// to the item before the update.
func (s *scope) apply(c *changes) Item {
	values := make([]value, len(c.set))
	for i, a := range c.set {
		if values[i] = s.value(a.value); values[i] == nil {
			s.fail("The provided expression refers to an attribute that does not exist in the item")
		}
	}
	next := maps.Clone(s.it)
	if next == nil {
		next = make(Item)
	}
	if s.err != nil {
		return nil
	}
	copied := make(map[string]bool)
	for i, a := range c.set {
		s.put(next, copied, "", a.path, values[i])
	}
	for _, path := range c.remove {
		s.put(next, copied, "", path, nil)
	}
	return next
}

// scope.put sets the value at a path, or removes the value if v is nil. The stored item
// must not change, so put copies each map before the first change of the map in an
// update.
func (s *scope) put(in Item, copied map[string]bool, prefix string, path []string, v value) {
	if strings.HasPrefix(path[len(path)-1], "[") {
		s.fail("this package sets no element of a list")
		return
	}
	name := s.name(path[0])
	if len(path) == 1 {
		if v == nil {
			delete(in, name)
		} else {
			in[name] = v
		}
		return
	}
	m, ok := in[name].(*types.AttributeValueMemberM)
	if !ok {
		s.fail("The document path provided in the update expression is invalid for update")
		return
	}
	prefix += "." + name
	if !copied[prefix] {
		m = &types.AttributeValueMemberM{Value: maps.Clone(m.Value)}
		if m.Value == nil {
			m.Value = make(Item)
		}
		copied[prefix] = true
		in[name] = m
	}
	s.put(m.Value, copied, prefix, path[1:], v)
}
