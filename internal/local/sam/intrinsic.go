package sam

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Template.call evaluates an intrinsic function.
func (t *Template) call(name string, arg *yaml.Node) (any, error) {
	// without this limit, a value that refers to itself would be evaluated without end
	if t.depth++; t.depth > maxDepth {
		return nil, errors.New("values refer to each other in a circle")
	}
	defer func() { t.depth-- }()

	v, err := t.evaluate(name, arg)
	if err != nil {
		return nil, wrapCall(name, err)
	}
	return v, nil
}

// wrapCall adds the name of an intrinsic function to an error. An error that already
// names a function gets no second name.
func wrapCall(name string, err error) error {
	if e, ok := errors.AsType[*callError](err); ok {
		return e
	}
	return &callError{name: name, err: err}
}

type callError struct {
	name string
	err  error
}

func (e *callError) Error() string { return e.name + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

func (t *Template) evaluate(name string, arg *yaml.Node) (any, error) {
	switch name {
	case "Ref":
		if arg.Kind != yaml.ScalarNode {
			return nil, errors.New("takes a name")
		}
		return t.ref(arg.Value)
	case "Fn::GetAtt":
		return t.getAtt(arg)
	case "Fn::Sub":
		return t.sub(arg)
	case "Fn::If":
		branch, err := t.branch(arg)
		if err != nil {
			return nil, err
		}
		return t.value(branch)
	}
	args, err := t.arguments(arg)
	if err != nil {
		return nil, err
	}
	switch name {
	case "Fn::Join":
		return join(args)
	case "Fn::Select":
		return selectOne(args)
	case "Fn::Split":
		return split(args)
	case "Fn::FindInMap":
		return t.findInMap(args)
	case "Fn::Base64":
		s, err := text(args[0])
		return base64.StdEncoding.EncodeToString([]byte(s)), err
	case "Fn::GetAZs":
		return []any{t.opts.Region + "a", t.opts.Region + "b", t.opts.Region + "c"}, nil
	case "Fn::ImportValue":
		return nil, errors.New("exports of other stacks are not known here; make it a parameter")
	default:
		return nil, errors.New("not known here; make it a parameter")
	}
}

// Template.arguments resolves the argument of an intrinsic function. It returns
// a list as it is. It puts any other value, and an empty list, into a new list, so that
// the result is never empty.
func (t *Template) arguments(arg *yaml.Node) ([]any, error) {
	v, err := t.value(arg)
	if err != nil {
		return nil, err
	}
	if list, ok := v.([]any); ok && len(list) > 0 {
		return list, nil
	}
	return []any{v}, nil
}

func join(args []any) (any, error) {
	if len(args) != 2 {
		return nil, errors.New("takes a delimiter and a list")
	}
	delimiter, err := text(args[0])
	if err != nil {
		return nil, err
	}
	list, err := texts(args[1])
	return strings.Join(list, delimiter), err
}

func selectOne(args []any) (any, error) {
	if len(args) != 2 {
		return nil, errors.New("takes an index and a list")
	}
	s, err := text(args[0])
	if err != nil {
		return nil, err
	}
	list, ok := args[1].([]any)
	if i, err := strconv.Atoi(s); err == nil && ok && i >= 0 && i < len(list) {
		return list[i], nil
	}
	return nil, fmt.Errorf("no element %s in a list of %d", s, len(list))
}

func split(args []any) (any, error) {
	if len(args) != 2 {
		return nil, errors.New("takes a delimiter and a text")
	}
	both, err := texts(args)
	if err != nil {
		return nil, err
	}
	var out []any
	for part := range strings.SplitSeq(both[1], both[0]) {
		out = append(out, part)
	}
	return out, nil
}

func (t *Template) findInMap(args []any) (any, error) {
	if len(args) < 3 {
		return nil, errors.New("takes a map and two keys")
	}
	keys, err := texts(args[:3])
	if err != nil {
		return nil, err
	}
	n := child(t.root, "Mappings")
	for _, key := range keys {
		n = child(n, key)
	}
	if n != nil {
		return t.value(n)
	}
	if len(args) > 3 {
		if options, ok := args[3].(map[string]any); ok && options["DefaultValue"] != nil {
			return options["DefaultValue"], nil
		}
	}
	return nil, fmt.Errorf("nothing at %s", strings.Join(keys, "."))
}

// Template.sub evaluates Fn::Sub. It replaces ${Name} and ${Name.Attribute} by values
// from the mapping of Fn::Sub. If the mapping lacks a name, sub takes the value from
// the template. ${!Name} becomes the text ${Name}.
func (t *Template) sub(arg *yaml.Node) (any, error) {
	template, own := arg, (*yaml.Node)(nil)
	if arg.Kind == yaml.SequenceNode {
		if len(arg.Content) != 2 || arg.Content[1].Kind != yaml.MappingNode {
			return nil, errors.New("takes a text, or a text and a mapping")
		}
		template, own = arg.Content[0], arg.Content[1]
	}
	if template.Kind != yaml.ScalarNode {
		return nil, errors.New("takes a text, or a text and a mapping")
	}
	var out strings.Builder
	rest := template.Value
	for {
		before, after, found := strings.Cut(rest, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			out.WriteString("${" + after)
			return out.String(), nil
		}
		rest = tail
		if literal, ok := strings.CutPrefix(name, "!"); ok {
			out.WriteString("${" + literal + "}")
			continue
		}
		s, err := t.variable(strings.TrimSpace(name), own)
		if err != nil {
			return nil, err
		}
		out.WriteString(s)
	}
}

func (t *Template) variable(name string, own *yaml.Node) (string, error) {
	var v any
	var err error
	resource, attribute, dotted := strings.Cut(name, ".")
	switch n := child(own, name); {
	case n != nil:
		v, err = t.value(n)
	case dotted:
		v, err = t.attribute(resource, attribute)
	default:
		v, err = t.ref(name)
	}
	if err != nil {
		return "", err
	}
	s, err := text(v)
	if err != nil {
		return "", fmt.Errorf("${%s}: %w", name, err)
	}
	return s, nil
}

func (t *Template) getAtt(arg *yaml.Node) (any, error) {
	if arg.Kind == yaml.ScalarNode {
		resource, attribute, ok := strings.Cut(arg.Value, ".")
		if !ok {
			return nil, fmt.Errorf("%q is not Resource.Attribute", arg.Value)
		}
		return t.attribute(resource, attribute)
	}
	args, err := t.arguments(arg)
	if err != nil {
		return nil, err
	}
	names, err := texts(args)
	if err != nil || len(names) != 2 {
		return nil, errors.New("takes a resource and an attribute")
	}
	return t.attribute(names[0], names[1])
}

// Template.branch returns the argument that Fn::If chooses.
func (t *Template) branch(arg *yaml.Node) (*yaml.Node, error) {
	if arg.Kind != yaml.SequenceNode || len(arg.Content) != 3 || arg.Content[0].Kind != yaml.ScalarNode {
		return nil, errors.New("takes a condition and two values")
	}
	yes, err := t.named(arg.Content[0].Value)
	if err != nil {
		return nil, err
	}
	if yes {
		return arg.Content[1], nil
	}
	return arg.Content[2], nil
}
