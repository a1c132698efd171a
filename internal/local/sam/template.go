package sam

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options are the options of [Load].
type Options struct {
	// StackName is the value of AWS::StackName. If the template sets no name for a
	// resource, the resource's name begins with StackName. Default "local".
	StackName string
	// Region is AWS::Region. Default "us-east-1".
	Region string
	// AccountID is AWS::AccountId. Default "123456789012".
	AccountID string
	// Parameters are values for the template's parameters, in place of the defaults. Load
	// refuses a parameter that the template doesn't have.
	Parameters map[string]string
	// Environment holds environment variables for every function. They replace the
	// template's variables of the same name, so the template's values aren't resolved.
	Environment map[string]string
}

// Template is a loaded template with its nested templates. It is not safe for
// concurrent use.
type Template struct {
	opts Options
	dir  string // folder of the file
	file string
	root *yaml.Node
	// resources holds the resources whose condition is true, in the template's
	// order.
	resources []resource
	nested    []*Template     // nested templates in the order of their resources
	in        nesting         // zero for the outermost template
	judging   map[string]bool // the conditions being evaluated
	*shared
}

// shared holds the common data of a template and its nested templates.
type shared struct {
	outermost *Template
	known     map[attributeName]string // values from Set
	depth     int                      // number of nested intrinsic functions being evaluated
	judged    int                      // number of conditions being evaluated
}

// attributeName names an attribute of a resource; an empty attribute means the value
// of Ref.
type attributeName struct{ id, attribute string }

type resource struct {
	id, kind string
	line     int        // line of the resource's id
	node     *yaml.Node // the whole resource
	// properties include the template's Globals.
	properties *yaml.Node
}

// Load reads a template. Paths in the template are relative to the template's folder.
func Load(path string, optFns ...func(*Options)) (*Template, error) {
	opts := Options{StackName: "local", Region: "us-east-1", AccountID: "123456789012"}
	for _, fn := range optFns {
		fn(&opts)
	}
	return load(path, opts, nesting{}, nil)
}

// load reads a template and its nested templates. common is nil for the outermost
// template.
func load(path string, opts Options, in nesting, common *shared) (*Template, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	root, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t := &Template{opts: opts, dir: filepath.Dir(path), file: path, root: root, in: in, judging: make(map[string]bool), shared: common}
	if common == nil {
		t.shared = &shared{outermost: t, known: make(map[attributeName]string)}
	}
	if err := errors.Join(t.checkParameters(), t.checkInputs()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := t.readResources(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := t.readNested(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func (t *Template) readResources() error {
	for id, node := range entries(child(t.root, "Resources")) {
		kind := child(node, "Type")
		if kind == nil || kind.Kind != yaml.ScalarNode {
			return fmt.Errorf("resource %s has no Type (line %d)", id, node.Line)
		}
		if c := child(node, "Condition"); c != nil {
			there, err := t.named(c.Value)
			if err != nil {
				return fmt.Errorf("resource %s: %w", id, err)
			}
			if !there {
				continue
			}
		}
		properties := child(node, "Properties")
		if section, ok := strings.CutPrefix(kind.Value, "AWS::Serverless::"); ok {
			properties = merge(child(child(t.root, "Globals"), section), properties)
		}
		t.resources = append(t.resources, resource{id: id, kind: kind.Value, line: keyLine(child(t.root, "Resources"), id), node: node, properties: properties})
	}
	if len(t.resources) == 0 {
		return errors.New("no resources")
	}
	return nil
}

// merge applies a value of Globals to the value of a resource, as SAM does. It merges
// two mappings. It joins two lists: the global entries come first. In every other case,
// the resource's value wins.
func merge(global, own *yaml.Node) *yaml.Node {
	switch {
	case global == nil:
		return own
	case own == nil:
		return global
	case global.Kind != own.Kind, isCall(global), isCall(own):
		return own
	case own.Kind == yaml.SequenceNode:
		return &yaml.Node{Kind: own.Kind, Tag: own.Tag, Line: own.Line, Content: slices.Concat(global.Content, own.Content)}
	case own.Kind != yaml.MappingNode:
		return own
	}
	out := &yaml.Node{Kind: own.Kind, Tag: own.Tag, Line: own.Line}
	add := func(name string, value *yaml.Node) {
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: value.Line}
		out.Content = append(out.Content, key, value)
	}
	for name, value := range entries(global) {
		add(name, merge(value, child(own, name)))
	}
	for name, value := range entries(own) {
		if child(global, name) == nil {
			add(name, value)
		}
	}
	return out
}

func isCall(n *yaml.Node) bool {
	_, _, ok := intrinsic(n)
	return ok
}

// Files returns the paths of the template and of its nested templates.
func (t *Template) Files() []string {
	var out []string
	for in := range t.all() {
		out = append(out, in.file)
	}
	return out
}

// Set sets the value that Fn::GetAtt returns for a resource's attribute. If attribute is
// "", Set sets the value of Ref.
func (t *Template) Set(id, attribute, value string) {
	t.known[attributeName{id, attribute}] = value
}

// Resource is a resource of the template, and the line where it begins.
type Resource struct {
	ID, Type string
	Line     int
}

// Resources returns the resources whose condition is true: first the template's own, in
// the template's order, and then those of nested templates.
func (t *Template) Resources() []Resource {
	var out []Resource
	for in := range t.all() {
		for _, r := range in.resources {
			out = append(out, Resource{ID: in.full(r.id), Type: r.kind, Line: r.line})
		}
	}
	return out
}

func (t *Template) resource(id string) (resource, bool) {
	for _, r := range t.resources {
		if r.id == id {
			return r, true
		}
	}
	return resource{}, false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
