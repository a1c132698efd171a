package alarmtest

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
)

// resolve returns the resources of a template, with all references replaced.
func resolve(template string, params map[string]string) (map[string]yaml.Node, error) {
	var t struct {
		Parameters map[string]struct {
			Default string `yaml:"Default"`
		} `yaml:"Parameters"`
		Resources yaml.Node `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(template), &t); err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for name, p := range t.Parameters {
		values[name] = p.Default
	}
	maps.Copy(values, params)
	if err := replace(&t.Resources, values); err != nil {
		return nil, err
	}
	all := make(map[string]yaml.Node)
	return all, t.Resources.Decode(&all)
}

// noValue, as the value of a property, makes the property count as missing.
const noValue = "AWS::NoValue"

func replace(n *yaml.Node, values map[string]string) error {
	switch n.Tag {
	case "!Ref", "!GetAtt":
		text := n.Value
		if v, ok := values[text]; ok && n.Tag == "!Ref" {
			text = v
		}
		*n = yaml.Node{Kind: yaml.ScalarNode, Value: text, Tag: "!!str"}
		if number(text) {
			n.Tag = ""
		}
		return nil
	case "!Sub":
		if n.Kind == yaml.ScalarNode {
			text := n.Value
			for name, v := range values {
				text = strings.ReplaceAll(text, "${"+name+"}", v)
			}
			*n = yaml.Node{Kind: yaml.ScalarNode, Value: text, Tag: "!!str"}
			return nil
		}
	case "!If":
		if len(n.Content) != 3 {
			return fmt.Errorf("line %d: !If has %d parts", n.Line, len(n.Content))
		}
		chosen := n.Content[1]
		if values[n.Content[0].Value] == "false" {
			chosen = n.Content[2]
		}
		if err := replace(chosen, values); err != nil {
			return err
		}
		*n = *chosen
		return nil
	}
	for i := 0; i < len(n.Content); i++ {
		if err := replace(n.Content[i], values); err != nil {
			return err
		}
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i].Value == noValue {
			n.Content = append(n.Content[:i-1], n.Content[i+1:]...)
			i -= 2
		}
	}
	// an unknown intrinsic function keeps its tag, so that it can't be decoded as a
	// string by accident
	return nil
}

func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.") == ""
}

// strict decodes a YAML node, and refuses unknown fields.
func strict(node *yaml.Node, into any) error {
	raw, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	return dec.Decode(into)
}
