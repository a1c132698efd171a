package sam

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// number is a number as the template spells it. A resolved value is nil, a string, a bool,
// a number, a []any or a map[string]any.
type number string

// noValue is the value of AWS::NoValue. Resolved lists and mappings don't contain it.
type noValue struct{}

// Template.resolved resolves n as t.value does, but refuses dynamic references, which
// only CloudFormation can look up.
func (t *Template) resolved(n *yaml.Node) (any, error) {
	v, err := t.value(n)
	if err != nil {
		return nil, err
	}
	return v, dynamicReference(v)
}

func dynamicReference(v any) error {
	switch v := v.(type) {
	case string:
		if _, reference, found := strings.Cut(v, "{{resolve:"); found {
			reference, _, _ = strings.Cut(reference, "}}")
			return fmt.Errorf("the dynamic reference {{resolve:%s}} is not known here: %s", reference, remedy)
		}
	case []any:
		for _, e := range v {
			if err := dynamicReference(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if err := dynamicReference(v[key]); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}

// Template.value resolves n and everything in n.
func (t *Template) value(n *yaml.Node) (any, error) {
	if name, arg, ok := intrinsic(n); ok {
		return t.call(name, arg)
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for key, child := range entries(n) {
			v, err := t.value(child)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			if _, none := v.(noValue); !none {
				m[key] = v
			}
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, child := range n.Content {
			v, err := t.value(child)
			if err != nil {
				return nil, err
			}
			if _, none := v.(noValue); !none {
				list = append(list, v)
			}
		}
		return list, nil
	default:
		return scalar(n), nil
	}
}

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		return number(n.Value)
	default: // a string, or a timestamp such as the Version of a policy
		return n.Value
	}
}

// Template.settle returns n itself, unless n is an intrinsic function: then it returns
// the function's result. It doesn't resolve what a list or mapping contains. It returns
// nil for AWS::NoValue and null.
func (t *Template) settle(n *yaml.Node) (*yaml.Node, error) {
	for n != nil {
		name, arg, ok := intrinsic(n)
		switch {
		case !ok && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
			return nil, nil
		case !ok:
			return n, nil
		case name == "Fn::If":
			branch, err := t.branch(arg)
			if err != nil {
				return nil, err
			}
			n = branch
		default:
			v, err := t.call(name, arg)
			if err != nil {
				return nil, err
			}
			return asNode(v, n.Line), nil
		}
	}
	return nil, nil
}

// asNode turns a resolved value back into YAML nodes.
func asNode(v any, line int) *yaml.Node {
	str := func(tag, s string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: s, Line: line}
	}
	switch v := v.(type) {
	case string:
		return str("!!str", v)
	case number:
		return str("!!float", string(v))
	case bool:
		return str("!!bool", strconv.FormatBool(v))
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: line}
		for _, e := range v {
			n.Content = append(n.Content, asNode(e, line))
		}
		return n
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line}
		for _, key := range sortedKeys(v) {
			n.Content = append(n.Content, str("!!str", key), asNode(v[key], line))
		}
		return n
	default:
		return nil
	}
}

// text returns a scalar as CloudFormation writes it into a string.
func text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case number:
		return string(v), nil
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	case nil:
		return "", errors.New("null where a text is wanted")
	case noValue:
		return "", errors.New("AWS::NoValue where a text is wanted")
	default:
		return "", errors.New("a list or mapping where a text is wanted")
	}
}

// texts returns a list of scalars; a single scalar becomes a list.
func texts(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		s, err := text(v)
		return []string{s}, err
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, err := text(e)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
