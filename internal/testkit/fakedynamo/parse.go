package fakedynamo

import (
	"fmt"
	"strings"
	"sync"
)

// condition is one node in the tree of a parsed condition.
type condition struct {
	op   string // AND, OR, NOT, IN, BETWEEN, a comparison's sign, or a function's name
	subs []*condition
	args []operand
}

// operand is a path, a value's placeholder, or a function of operands.
type operand struct {
	path  []string // each part is a name, a placeholder, or an index such as "[0"
	value string
	fn    string // size, if_not_exists, list_append, + or -
	args  []operand
}

// assignment is one assignment of a SET clause.
type assignment struct {
	path  []string
	value operand
}

// changes is a parsed update expression.
type changes struct {
	set    []assignment
	remove [][]string
}

// The type parsed is the result of parsing an expression. Its field used has the expression's
// placeholders.
type parsed struct {
	cond *condition
	upd  *changes
	used []string
	err  error
}

// cache keeps every parsed expression. It stays small, since few different texts occur.
var cache sync.Map // string → *parsed

func parseCondition(s string) *parsed {
	return cached("if "+s, func(p *parser) (out parsed) {
		out.cond = p.or()
		return out
	}, s)
}

func parseUpdate(s string) *parsed {
	return cached("do "+s, func(p *parser) (out parsed) {
		out.upd = p.update()
		return out
	}, s)
}

func cached(name string, parse func(*parser) parsed, s string) *parsed {
	if known, ok := cache.Load(name); ok {
		return known.(*parsed)
	}
	p := &parser{all: tokens(s)}
	out := parse(p)
	if p.err == nil && p.at < len(p.all) {
		p.fail("%q is left over", p.all[p.at])
	}
	out.used, out.err = p.used, p.err
	known, _ := cache.LoadOrStore(name, &out)
	return known.(*parsed)
}

type parser struct {
	all  []string
	at   int
	used []string
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = invalid("expression: " + fmt.Sprintf(format, args...) + " in " + strings.Join(p.all, " "))
	}
	p.at = len(p.all)
}

func (p *parser) peek() string {
	if p.at < len(p.all) {
		return p.all[p.at]
	}
	return ""
}

func (p *parser) next() string {
	s := p.peek()
	p.at++
	return s
}

func (p *parser) is(word string) bool {
	if strings.EqualFold(p.peek(), word) && p.peek() != "" {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(word string) {
	if !p.is(word) {
		p.fail("%q where %q belongs", p.peek(), word)
	}
}

func (p *parser) or() *condition {
	c := p.and()
	for p.is("OR") {
		c = &condition{op: "OR", subs: []*condition{c, p.and()}}
	}
	return c
}

func (p *parser) and() *condition {
	c := p.not()
	for p.is("AND") {
		c = &condition{op: "AND", subs: []*condition{c, p.not()}}
	}
	return c
}

func (p *parser) not() *condition {
	if p.is("NOT") {
		return &condition{op: "NOT", subs: []*condition{p.not()}}
	}
	if p.is("(") {
		c := p.or()
		p.want(")")
		return c
	}
	switch name := p.peek(); name {
	case "attribute_exists", "attribute_not_exists":
		p.next()
		p.want("(")
		c := &condition{op: name, args: []operand{{path: p.path()}}}
		p.want(")")
		return c
	case "begins_with", "contains":
		p.next()
		p.want("(")
		a := p.operand()
		p.want(",")
		b := p.operand()
		p.want(")")
		return &condition{op: name, args: []operand{a, b}}
	}
	left := p.operand()
	switch op := p.next(); strings.ToUpper(op) {
	case "=", "<>", "<", "<=", ">", ">=":
		return &condition{op: op, args: []operand{left, p.operand()}}
	case "BETWEEN":
		low := p.operand()
		p.want("AND")
		return &condition{op: "BETWEEN", args: []operand{left, low, p.operand()}}
	case "IN":
		p.want("(")
		args := []operand{left, p.operand()}
		for p.is(",") {
			args = append(args, p.operand())
		}
		p.want(")")
		return &condition{op: "IN", args: args}
	default:
		p.fail("%q is no comparison", op)
		return nil
	}
}

func (p *parser) operand() operand {
	word := p.peek()
	switch {
	case strings.HasPrefix(word, ":"):
		p.next()
		p.used = append(p.used, word)
		return operand{value: word}
	case word == "size", word == "if_not_exists", word == "list_append":
		p.next()
		p.want("(")
		o := operand{fn: word, args: []operand{p.operand()}}
		if word != "size" {
			p.want(",")
			o.args = append(o.args, p.operand())
		}
		p.want(")")
		return o
	}
	return operand{path: p.path()}
}

func (p *parser) path() (parts []string) {
	for {
		word := p.next()
		if word == "" || !inWord(rune(word[0])) || word[0] == ':' {
			p.fail("%q is no attribute", word)
			return nil
		}
		if word[0] == '#' {
			p.used = append(p.used, word)
		}
		parts = append(parts, word)
		for p.is("[") {
			parts = append(parts, "["+p.next())
			p.want("]")
		}
		if !p.is(".") {
			return parts
		}
	}
}

func (p *parser) update() *changes {
	var c changes
	for p.err == nil && p.at < len(p.all) {
		switch {
		case p.is("SET"):
			for more := true; more; more = p.is(",") {
				path := p.path()
				p.want("=")
				v := p.operand()
				for p.peek() == "+" || p.peek() == "-" {
					v = operand{fn: p.next(), args: []operand{v, p.operand()}}
				}
				c.set = append(c.set, assignment{path, v})
			}
		case p.is("REMOVE"):
			for more := true; more; more = p.is(",") {
				c.remove = append(c.remove, p.path())
			}
		default:
			p.fail("%q is no clause that this package has", p.peek())
		}
	}
	return &c
}
