package eventsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// filters are the patterns of filter criteria. Filters by their own: what they
// are matched against is JSON decoded by decodeJSON.
type filters []pattern

// pattern holds what must be true of an object: all of its fields, and of each
// of its ors one of the alternatives.
type pattern struct {
	fields map[string]field
	ors    [][]pattern
}

// field holds what must be true of one key: either a pattern for the object
// below, or one of the rules for the value.
type field struct {
	below *pattern
	rules []rule
}

// parseFilters reads patterns as Lambda's FilterCriteria have them. An operator
// that isn't known is an error: a filter that is misread would drop records in
// silence, or deliver what AWS would not.
func parseFilters(sources []string) (filters, error) {
	parsed := make(filters, 0, len(sources))
	for _, source := range sources {
		v, err := decodeJSON([]byte(source))
		if err != nil {
			return nil, fmt.Errorf("filter %s: not JSON: %w", source, err)
		}
		object, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("filter %s: not an object", source)
		}
		p, err := parsePattern(object)
		if err != nil {
			return nil, fmt.Errorf("filter %s: %w", source, err)
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}

func parsePattern(object map[string]any) (pattern, error) {
	p := pattern{fields: map[string]field{}}
	// In order, so that the same pattern always has the same error.
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var err error
		switch value := object[key].(type) {
		case map[string]any:
			var below pattern
			if below, err = parsePattern(value); err == nil {
				p.fields[key] = field{below: &below}
			}
		case []any:
			if key == "$or" {
				err = p.parseOr(value)
				break
			}
			var rules []rule
			if rules, err = parseRules(value); err == nil {
				p.fields[key] = field{rules: rules}
			}
		default:
			err = errors.New("needs an array of values or an object")
		}
		if err != nil {
			return p, fmt.Errorf("%s: %w", key, err)
		}
	}
	return p, nil
}

func (p *pattern) parseOr(list []any) error {
	if len(list) < 2 {
		return errors.New("needs two patterns or more")
	}
	alternatives := make([]pattern, 0, len(list))
	for _, v := range list {
		object, ok := v.(map[string]any)
		if !ok {
			return errors.New("takes objects only")
		}
		alternative, err := parsePattern(object)
		if err != nil {
			return err
		}
		alternatives = append(alternatives, alternative)
	}
	p.ors = append(p.ors, alternatives)
	return nil
}

// match reports whether any of the filters wants v. No filters want all.
func (f filters) match(v any) bool {
	return len(f) == 0 || slices.ContainsFunc(f, func(p pattern) bool { return p.match(v) })
}

// match reports whether v fulfils the pattern. Where v is an array, one of its
// elements has to.
func (p pattern) match(v any) bool {
	if list, ok := v.([]any); ok && len(list) > 0 {
		return slices.ContainsFunc(list, p.match)
	}
	object, _ := v.(map[string]any) // nil for what isn't one: all its fields are missing
	for key, field := range p.fields {
		value, present := object[key]
		if !field.match(value, present) {
			return false
		}
	}
	for _, alternatives := range p.ors {
		if !slices.ContainsFunc(alternatives, func(p pattern) bool { return p.match(v) }) {
			return false
		}
	}
	return true
}

func (f field) match(value any, present bool) bool {
	if f.below != nil {
		return f.below.match(value)
	}
	var leaves []any
	if present {
		leaves = leavesOf(value)
	}
	return slices.ContainsFunc(f.rules, func(r rule) bool { return r.match(leaves) })
}

// leavesOf returns what rules see of a value: itself, or the elements of an
// array. An object is no leaf: to a rule it isn't there.
func leavesOf(value any) []any {
	switch v := value.(type) {
	case map[string]any:
		return nil
	case []any:
		var leaves []any
		for _, element := range v {
			leaves = append(leaves, leavesOf(element)...)
		}
		return leaves
	default:
		return []any{v}
	}
}

// decodeJSON reads one JSON value, numbers as they are written.
func decodeJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}
