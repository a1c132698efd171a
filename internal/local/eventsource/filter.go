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

// filters are the patterns of filter criteria. They match values decoded by
// decodeJSON.
type filters []pattern

// pattern holds the conditions on an object: all fields must match, and at least one
// alternative of each "$or".
type pattern struct {
	fields map[string]field
	ors    [][]pattern
}

// field holds the conditions on a key. If below isn't nil, it is the pattern for the
// object below the key. Otherwise, the key's value must fulfil at least one of the
// rules.
type field struct {
	below *pattern
	rules []rule
}

// parseFilters reads patterns in the form of Lambda's FilterCriteria. An unknown
// operator is an error, because a misread filter would silently drop records, or
// deliver records that AWS would not.
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

// Match reports whether an event source mapping with these filter patterns delivers the
// record. The mapping delivers it if a pattern matches, or if there are no patterns.
// Match returns an error if the record or a pattern can't be read. An error about a
// pattern contains the pattern.
func Match(patterns []string, record []byte) (bool, error) {
	parsed, err := parseFilters(patterns)
	if err != nil {
		return false, err
	}
	v, err := decodeJSON(record)
	if err != nil {
		return false, err
	}
	return len(parsed) == 0 || parsed.match(v), nil
}

func parsePattern(object map[string]any) (pattern, error) {
	p := pattern{fields: map[string]field{}}
	// The keys are sorted so that a pattern with several errors always reports the same
	// error.
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

// filters.match reports whether any of the filters matches v. If there are no filters,
// every v matches.
func (f filters) match(v any) bool {
	return len(f) == 0 || slices.ContainsFunc(f, func(p pattern) bool { return p.match(v) })
}

// pattern.match reports whether v fulfils the pattern. If v is an array with elements,
// at least one element must fulfil the pattern.
func (p pattern) match(v any) bool {
	if list, ok := v.([]any); ok && len(list) > 0 {
		return slices.ContainsFunc(list, p.match)
	}
	object, _ := v.(map[string]any) // nil if v is not an object; then all fields count as missing
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

// leavesOf returns the values that rules see. For an array, these are the elements of
// the array and of arrays in it; otherwise, the value itself. Rules don't see objects.
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

// decodeJSON reads a single JSON value, and keeps the spelling of numbers.
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
