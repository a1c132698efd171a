package eventsource

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// rule is one condition on a field: a value or an operator. match gets the field's
// values, as leavesOf returns them, or no values if the field is missing. Every rule
// except exists is fulfilled if at least one of the values matches.
type rule interface{ match(leaves []any) bool }

type (
	// equal matches the same string, number, true, false or null. Numbers are the same
	// if they are written in the same way.
	equal struct{ want any }
	// text matches a string for which the function returns true.
	text func(string) bool
	// anythingBut matches a value that is not in the list.
	anythingBut []any
	// numeric matches a number within all bounds.
	numeric []bound
	// exists(true) matches a field with values, and exists(false) a field without
	// values.
	exists bool
)

type bound struct {
	op    string
	value *big.Rat
}

func (r equal) match(leaves []any) bool { return slices.Contains(leaves, r.want) }

func (r exists) match(leaves []any) bool { return bool(r) == (len(leaves) > 0) }

func (r text) match(leaves []any) bool {
	return slices.ContainsFunc(leaves, func(leaf any) bool {
		s, ok := leaf.(string)
		return ok && r(s)
	})
}

func (r anythingBut) match(leaves []any) bool {
	return slices.ContainsFunc(leaves, func(leaf any) bool { return !slices.Contains(r, leaf) })
}

func (r numeric) match(leaves []any) bool {
	return slices.ContainsFunc(leaves, func(leaf any) bool {
		number, ok := leaf.(json.Number)
		if !ok {
			return false
		}
		value, ok := rational(number)
		return ok && !slices.ContainsFunc(r, func(b bound) bool { return !b.holds(value) })
	})
}

func (b bound) holds(value *big.Rat) bool {
	switch c := value.Cmp(b.value); b.op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	default: // "="
		return c == 0
	}
}

// rational returns the exact value of n, or false if n is too large or too near to
// zero. The limits are needed because JSON may contain a number such as 1e999999999,
// whose exact value would fill the memory.
func rational(n json.Number) (*big.Rat, bool) {
	if f, err := n.Float64(); err != nil || f != 0 && (f > 1e30 || f < -1e30 || f > -1e-30 && f < 1e-30) {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}

func parseRules(list []any) ([]rule, error) {
	if len(list) == 0 {
		return nil, errors.New("an empty array matches nothing")
	}
	rules := make([]rule, 0, len(list))
	for _, v := range list {
		r, err := parseRule(v)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(v any) (rule, error) {
	switch v := v.(type) {
	case nil, string, bool, json.Number:
		return equal{v}, nil
	case map[string]any:
		if len(v) != 1 {
			return nil, errors.New("a rule has one operator")
		}
		for operator, operand := range v {
			r, err := parseOperator(operator, operand)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", operator, err)
			}
			return r, nil
		}
	}
	return nil, errors.New("a rule is a value or an object with an operator, not an array")
}

func parseOperator(operator string, operand any) (rule, error) {
	switch operator {
	case "exists":
		if want, ok := operand.(bool); ok {
			return exists(want), nil
		}
		return nil, errors.New("takes true or false")
	case "prefix", "suffix", "equals-ignore-case":
		if s, ok := operand.(string); ok {
			return parseText(operator, s), nil
		}
		return nil, errors.New("takes a string")
	case "anything-but":
		list, ok := operand.([]any)
		if !ok {
			list = []any{operand}
		}
		for _, v := range list {
			switch v.(type) {
			case string, json.Number:
			default:
				return nil, errors.New("takes strings and numbers")
			}
		}
		if len(list) == 0 {
			return nil, errors.New("takes at least one value")
		}
		return anythingBut(list), nil
	case "numeric":
		return parseNumeric(operand)
	}
	return nil, errors.New("unknown operator; Lambda has exists, prefix, suffix, equals-ignore-case, anything-but, numeric and $or")
}

func parseText(operator, s string) text {
	switch operator {
	case "prefix":
		return func(leaf string) bool { return strings.HasPrefix(leaf, s) }
	case "suffix":
		return func(leaf string) bool { return strings.HasSuffix(leaf, s) }
	default:
		return func(leaf string) bool { return strings.EqualFold(leaf, s) }
	}
}

// parseNumeric reads ["=", 5], [">", 0] and ["<", 10, ">=", 5].
func parseNumeric(operand any) (rule, error) {
	list, ok := operand.([]any)
	if !ok || len(list) != 2 && len(list) != 4 {
		return nil, errors.New("takes an array of one or two pairs of comparison and number")
	}
	var r numeric
	directions := map[byte]int{}
	for pair := range slices.Chunk(list, 2) {
		op, _ := pair[0].(string)
		n, _ := pair[1].(json.Number)
		value, ok := rational(n)
		if !slices.Contains([]string{"=", "<", "<=", ">", ">="}, op) || !ok {
			return nil, fmt.Errorf("%v %v is not a comparison with a number", pair[0], pair[1])
		}
		directions[op[0]]++
		r = append(r, bound{op, value})
	}
	if len(r) == 2 && (directions['<'] != 1 || directions['>'] != 1) {
		return nil, errors.New("a range has one lower and one upper bound")
	}
	return r, nil
}
