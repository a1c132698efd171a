package sam

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nesting says where a template is nested.
type nesting struct {
	parent *Template
	id     string     // id of the nesting resource in parent
	inputs *yaml.Node // Parameters of the resource
	level  int        // number of enclosing templates
}

// maxNesting limits the nesting, since a template may nest itself.
const maxNesting = 10

// readNested reads the nested templates whose location is a path. It skips a nesting
// resource with another location, such as a URL: Ignored returns this resource.
func (t *Template) readNested() error {
	var errs []error
	for _, r := range t.resources {
		if !isNested(r.kind) {
			continue
		}
		p := t.props(r)
		location := map[string]string{typeApplication: "Location", typeStack: "TemplateURL"}[r.kind]
		path, _ := p.value(location).(string)
		if err := p.err(); err != nil {
			errs = append(errs, err)
			continue
		}
		if path == "" || strings.Contains(path, "://") {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.dir, path)
		}
		in := nesting{parent: t, id: r.id, inputs: child(r.properties, "Parameters"), level: t.in.level + 1}
		if in.level > maxNesting {
			errs = append(errs, fmt.Errorf("%s: templates are nested too deeply", r.id))
			continue
		}
		opts := t.opts
		opts.StackName, opts.Parameters = t.opts.StackName+"-"+r.id, nil
		nested, err := load(path, opts, in, t.shared)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.id, err))
			continue
		}
		t.nested = append(t.nested, nested)
	}
	return errors.Join(errs...)
}

// checkInputs returns an error if the nesting resource sets a parameter that this template
// doesn't have.
func (t *Template) checkInputs() error {
	for name := range entries(t.in.inputs) {
		if child(child(t.root, "Parameters"), name) == nil {
			return fmt.Errorf("there is no parameter %s, which %s sets", name, t.in.id)
		}
	}
	return nil
}

// nesting.value resolves the value that the nesting resource gives to a parameter. It
// returns false if the value is AWS::NoValue.
func (in nesting) value(input *yaml.Node) (string, bool, error) {
	v, err := in.parent.value(input)
	if err != nil {
		return "", false, err
	}
	if _, none := v.(noValue); none {
		return "", false, nil
	}
	if list, ok := v.([]any); ok {
		all, err := texts(list)
		return strings.Join(all, ","), true, err
	}
	s, err := text(v)
	return s, true, err
}

// Template.output resolves an output of the template that a resource nests.
func (t *Template) output(id, name string) (any, error) {
	nested := t.child(id)
	if nested == nil {
		return nil, fmt.Errorf("the template of %s is missing, so the output %s is unknown", id, name)
	}
	value := child(child(child(nested.root, "Outputs"), name), "Value")
	if value == nil {
		return nil, fmt.Errorf("the template of %s has no output %s", id, name)
	}
	return nested.value(value)
}

// Template.child returns the template that a resource nests, or nil.
func (t *Template) child(id string) *Template {
	for _, nested := range t.nested {
		if nested.in.id == id {
			return nested
		}
	}
	return nil
}

// Template.all returns an iterator over the template and its nested templates.
func (t *Template) all() iter.Seq[*Template] {
	return func(yield func(*Template) bool) { t.each(yield) }
}

func (t *Template) each(yield func(*Template) bool) bool {
	if !yield(t) {
		return false
	}
	for _, nested := range t.nested {
		if !nested.each(yield) {
			return false
		}
	}
	return true
}

// Template.full returns a resource's id with the ids of the nesting resources before
// it. For example, Samekey.Worker is the resource Worker in the template that the
// resource Samekey nests.
func (t *Template) full(id string) string {
	if t.in.parent == nil {
		return id
	}
	return t.in.parent.full(t.in.id) + "." + id
}

// Template.later is called for a value that is unknown until Set sets it. While a
// condition is evaluated, later returns a placeholder, which is not empty and differs
// from every other value. Otherwise later returns err.
func (t *Template) later(kind, id string, err error) (any, error) {
	if t.judged > 0 {
		return kind + ":" + t.full(id), nil
	}
	return nil, err
}
