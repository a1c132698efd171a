package sam

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// props reads the properties of a mapping, one at a time, and resolves only the properties
// that are read. It collects errors.
type props struct {
	t    *Template
	path string // "Function Api: Environment"
	node *yaml.Node
	errs *[]error
}

func (t *Template) props(r resource) *props {
	return &props{t: t, path: r.id, node: r.properties, errs: new([]error)}
}

func (p *props) err() error { return errors.Join(*p.errs...) }

func (p *props) fail(name string, err error) {
	where := p.path
	node := p.node
	if name != "" {
		where += "." + name
		if n := child(p.node, name); n != nil {
			node = n
		}
	}
	if node != nil && node.Line > 0 {
		where += " (line " + strconv.Itoa(node.Line) + ")"
	}
	err = fmt.Errorf("%s: %w", where, err)
	// If a property is read twice, its error is still kept only once.
	if !slices.ContainsFunc(*p.errs, func(e error) bool { return e.Error() == err.Error() }) {
		*p.errs = append(*p.errs, err)
	}
}

func (p *props) has(name string) bool {
	return p.value(name) != nil
}

// props.value returns the resolved value of a property, or nil if there is none.
func (p *props) value(name string) any {
	n := child(p.node, name)
	if n == nil {
		return nil
	}
	v, err := p.t.resolved(n)
	if err != nil {
		p.fail(name, err)
		return nil
	}
	if _, none := v.(noValue); none {
		return nil
	}
	return v
}

// props.str returns a property as text; "" if there is none.
func (p *props) str(name string) string {
	v := p.value(name)
	if v == nil {
		return ""
	}
	s, err := text(v)
	if err != nil {
		p.fail(name, err)
	}
	return s
}

// props.required is like str, but a missing property is an error.
func (p *props) required(name string) string {
	before := len(*p.errs)
	s := p.str(name)
	if s == "" && len(*p.errs) == before {
		p.fail("", errors.New(name+" is missing"))
	}
	return s
}

// props.strs returns a list of texts; a single text becomes a list.
func (p *props) strs(name string) []string {
	v := p.value(name)
	if v == nil {
		return nil
	}
	list, err := texts(v)
	if err != nil {
		p.fail(name, err)
	}
	return list
}

// props.integer returns a property that is a whole number. It returns false if the
// property is missing or isn't a whole number.
func (p *props) integer(name string) (int, bool) {
	s := p.str(name)
	if s == "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		p.fail(name, fmt.Errorf("%q is not a whole number", s))
		return 0, false
	}
	return n, true
}

// props.number is like integer, but returns 0 where integer returns false.
func (p *props) number(name string) int {
	n, _ := p.integer(name)
	return n
}

func (p *props) seconds(name string) time.Duration {
	return time.Duration(p.number(name)) * time.Second
}

// props.boolean returns a property that is true or false; the template may write it as
// a string. A missing property is false.
func (p *props) boolean(name string) bool {
	yes, err := p.t.isTrue(child(p.node, name))
	if err != nil {
		p.fail(name, err)
	}
	return yes
}

func (t *Template) isTrue(n *yaml.Node) (bool, error) {
	if n == nil {
		return false, nil
	}
	v, err := t.value(n)
	if err != nil {
		return false, err
	}
	switch v := v.(type) {
	case bool:
		return v, nil
	case nil, noValue:
		return false, nil
	case string:
		switch strings.ToLower(v) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, fmt.Errorf("%v is neither true nor false", v)
}

// props.mapping returns the properties inside a property. If the property is missing,
// the result has no properties.
func (p *props) mapping(name string) *props {
	return p.enter(name, child(p.node, name), yaml.MappingNode)
}

func (p *props) enter(name string, n *yaml.Node, kind yaml.Kind) *props {
	path := p.path
	if name != "" {
		path += "." + name
	}
	in := &props{t: p.t, path: path, errs: p.errs}
	n, err := p.t.settle(n)
	switch {
	case err != nil:
		p.fail(name, err)
	case n != nil && n.Kind != kind:
		p.fail(name, errors.New("has another form than expected"))
	default:
		in.node = n
	}
	return in
}

// props.each calls yield with the name of every property and the properties inside it.
// A property that is no mapping is an error.
func (p *props) each(yield func(string, *props) bool) {
	for name, n := range entries(p.node) {
		in := p.enter(name, n, yaml.MappingNode)
		if in.node != nil && !yield(name, in) {
			return
		}
	}
}

// props.items returns an iterator over the mappings in a property that is a list. An
// element that is no mapping is an error.
func (p *props) items(name string) iter.Seq[*props] {
	return func(yield func(*props) bool) {
		list := p.enter(name, child(p.node, name), yaml.SequenceNode)
		if list.node == nil {
			return
		}
		for i, n := range list.node.Content {
			in := list.enter("["+strconv.Itoa(i)+"]", n, yaml.MappingNode)
			if in.node != nil && !yield(in) {
				return
			}
		}
	}
}

func (p *props) texts(name string) map[string]string {
	var out map[string]string
	in := p.mapping(name)
	for key := range entries(in.node) {
		v := in.value(key)
		if v == nil {
			continue
		}
		s, err := text(v)
		if err != nil {
			in.fail(key, err)
			continue
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[key] = s
	}
	return out
}
