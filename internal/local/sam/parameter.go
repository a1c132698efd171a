package sam

import (
	"fmt"
	"slices"
	"strings"
)

// checkParameters returns an error if Options.Parameters has a parameter that the
// template doesn't have, or a value that the template doesn't allow. A parameter
// without a value is an error only where the template uses the parameter.
func (t *Template) checkParameters() error {
	declared := child(t.root, "Parameters")
	for _, name := range sortedKeys(t.opts.Parameters) {
		if child(declared, name) == nil {
			return fmt.Errorf("there is no parameter %s", name)
		}
		if _, err := t.parameter(name); err != nil {
			return err
		}
	}
	return nil
}

// Template.parameter returns the value of a parameter: a string, or a list of strings.
func (t *Template) parameter(name string) (any, error) {
	n := child(child(t.root, "Parameters"), name)
	kind := "String"
	if k := child(n, "Type"); k != nil {
		kind = k.Value
	}
	value, given := t.opts.Parameters[name]
	if input := child(t.in.inputs, name); input != nil && !given {
		var err error
		if value, given, err = t.in.value(input); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	if !given {
		def := child(n, "Default")
		switch {
		case def == nil && t.in.parent != nil:
			return nil, fmt.Errorf("parameter %s has no value: set it in the Parameters of %s", name, t.in.id)
		case def == nil:
			return nil, fmt.Errorf("parameter %s has no value: give it one with --parameter %s=…", name, name)
		case strings.HasPrefix(kind, "AWS::SSM::"):
			return nil, fmt.Errorf("parameter %s is read from the parameter store, which samekey local doesn't have: give it a value with --parameter %s=…", name, name)
		}
		value = def.Value
	}
	if allowed := child(n, "AllowedValues"); allowed != nil {
		var values []string
		for _, v := range allowed.Content {
			values = append(values, v.Value)
		}
		if !slices.Contains(values, value) {
			return nil, fmt.Errorf("parameter %s is %q, but must be one of %s", name, value, strings.Join(values, ", "))
		}
	}
	if kind != "CommaDelimitedList" && !strings.HasPrefix(kind, "List<") && !strings.Contains(kind, "Value<List<") {
		return value, nil
	}
	list := []any{}
	if value == "" {
		return list, nil
	}
	for v := range strings.SplitSeq(value, ",") {
		list = append(list, strings.TrimSpace(v))
	}
	return list, nil
}
