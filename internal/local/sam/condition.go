package sam

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Template.named evaluates the template's condition with this name.
func (t *Template) named(name string) (bool, error) {
	n := child(child(t.root, "Conditions"), name)
	if n == nil {
		return false, fmt.Errorf("there is no condition %s", name)
	}
	if t.judging[name] {
		return false, fmt.Errorf("condition %s refers to itself", name)
	}
	t.judging[name] = true
	t.judged++
	defer func() { delete(t.judging, name); t.judged-- }()
	yes, err := t.condition(n)
	if err != nil {
		return false, fmt.Errorf("condition %s: %w", name, err)
	}
	return yes, nil
}

func (t *Template) condition(n *yaml.Node) (bool, error) {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return false, errors.New("not a condition")
	}
	name, arg := n.Content[0].Value, n.Content[1]
	if name == "Condition" {
		return t.named(arg.Value)
	}
	if arg.Kind != yaml.SequenceNode {
		return false, fmt.Errorf("%s takes a list", name)
	}
	list := arg.Content
	switch name {
	case "Fn::Equals":
		return t.equals(list)
	case "Fn::Not":
		if len(list) != 1 {
			return false, errors.New("Fn::Not takes one condition")
		}
		yes, err := t.condition(list[0])
		return !yes, err
	case "Fn::And", "Fn::Or":
		if len(list) == 0 {
			return false, fmt.Errorf("%s takes conditions", name)
		}
		for _, c := range list {
			yes, err := t.condition(c)
			if err != nil {
				return false, err
			}
			if yes == (name == "Fn::Or") {
				return yes, nil
			}
		}
		return name == "Fn::And", nil
	default:
		return false, fmt.Errorf("%s is not known in a condition", name)
	}
}

func (t *Template) equals(list []*yaml.Node) (bool, error) {
	if len(list) != 2 {
		return false, errors.New("Fn::Equals takes two values")
	}
	var both [2]string
	for i, n := range list {
		v, err := t.value(n)
		if err != nil {
			return false, err
		}
		if both[i], err = text(v); err != nil {
			return false, fmt.Errorf("Fn::Equals: %w", err)
		}
	}
	return both[0] == both[1], nil
}
