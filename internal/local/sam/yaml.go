package sam

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth limits the depth of a template, since an alias may contain itself.
const maxDepth = 100

// parse reads YAML or JSON into a tree. In the tree, intrinsic functions have their long
// forms, and aliases and merge keys are expanded.
func parse(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("not a mapping")
	}
	return expand(doc.Content[0], 0)
}

// expand returns a copy of n. It writes intrinsic functions in their long forms, and
// expands aliases and merge keys.
func expand(n *yaml.Node, depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: nested too deeply", n.Line)
	}
	if n.Kind == yaml.AliasNode {
		return expand(n.Alias, depth+1)
	}
	out := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Line: n.Line}
	short := ""
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		short = n.Tag[1:]
		out.Tag = map[yaml.Kind]string{yaml.ScalarNode: "!!str", yaml.SequenceNode: "!!seq", yaml.MappingNode: "!!map"}[n.Kind]
	}
	var err error
	if n.Kind == yaml.MappingNode {
		err = expandMapping(out, n, depth)
	} else {
		for _, child := range n.Content {
			var c *yaml.Node
			if c, err = expand(child, depth+1); err != nil {
				break
			}
			out.Content = append(out.Content, c)
		}
	}
	if err != nil || short == "" {
		return out, err
	}
	name := short
	if short != "Ref" && short != "Condition" {
		name = "Fn::" + short
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: n.Line}
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Content: []*yaml.Node{key, out}}, nil
}

func expandMapping(out, n *yaml.Node, depth int) error {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		value, err := expand(n.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		if key.Tag == "!!merge" {
			if value.Kind == yaml.SequenceNode {
				merged = append(merged, value.Content...)
			} else {
				merged = append(merged, value)
			}
			continue
		}
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key must be a plain word", key.Line)
		}
		if child(out, key.Value) != nil {
			return fmt.Errorf("line %d: %s appears twice", key.Line, key.Value)
		}
		out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key.Value, Line: key.Line}, value)
	}
	// An explicit key wins over a merged key. If two merged mappings have the same key,
	// the first mapping wins.
	for _, m := range merged {
		if m.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: only a mapping can be merged", m.Line)
		}
		for name, value := range entries(m) {
			if child(out, name) == nil {
				out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: value.Line}, value)
			}
		}
	}
	return nil
}

// child returns the value of a key; nil if n lacks the key or is no mapping.
func child(n *yaml.Node, name string) *yaml.Node {
	for key, value := range entries(n) {
		if key == name {
			return value
		}
	}
	return nil
}

// entries yields a mapping's entries in order. It yields nothing if n is no mapping.
func entries(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// intrinsic reports whether n is a call of an intrinsic function: a mapping with one key,
// which is Ref or begins with Fn::. It returns the function's name and its argument.
func intrinsic(n *yaml.Node) (name string, arg *yaml.Node, ok bool) {
	if n == nil || n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return "", nil, false
	}
	name = n.Content[0].Value
	if name != "Ref" && !strings.HasPrefix(name, "Fn::") {
		return "", nil, false
	}
	return name, n.Content[1], true
}

// keyLine returns the line of a key; 0 if n lacks the key or is no mapping.
func keyLine(n *yaml.Node, name string) int {
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i].Line
			}
		}
	}
	return 0
}
