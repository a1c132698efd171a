package sam

import (
	"errors"
	"fmt"
	"strings"
)

// Template.connect reads the resources of this template that are event sources or
// invocation settings of functions, as in plain CloudFormation. It adds each of these
// resources to its function, which may be in any template of the stack.
func (t *Template) connect(functions []Function) error {
	errs := make([]error, 0, len(t.resources))
	for _, r := range t.resources {
		p := t.props(r)
		switch r.kind {
		case typeMapping:
			if f := find(functions, p, t.target(p.required("FunctionName"))); f != nil {
				t.mapping(f, r.id, p)
			}
		case typeInvokes:
			if f := find(functions, p, t.target(p.required("FunctionName"))); f != nil {
				f.Async.read(p)
			}
		case typeSchedule:
			target := p.mapping("Target")
			id := t.target(target.str("Arn"))
			if id == "" {
				continue // the target is no function of the stack
			}
			s := schedule(r.id, "ScheduleV2", p)
			s.Input = target.str("Input")
			f := find(functions, p, id)
			f.Events = append(f.Events, Event{Name: r.id, Schedule: s})
		}
		errs = append(errs, p.err())
	}
	return errors.Join(errs...)
}

func (t *Template) mapping(f *Function, name string, p *props) {
	arn := p.required("EventSourceArn")
	if id, ok := t.queueByARN(arn); ok {
		f.Events = append(f.Events, Event{Name: name, Queue: queueEvent(p, id)})
		return
	}
	if t.isStream(arn) || strings.Contains(arn, ":dynamodb:") {
		f.Events = append(f.Events, Event{Name: name, Stream: streamEvent(p, arn)})
		return
	}
	f.Notes = append(f.Notes, fmt.Sprintf("event source %s has no effect: samekey local doesn't send %s", name, arn))
}

// isStream reports whether arn is the stream of a table, from any template of the
// stack.
func (t *Template) isStream(arn string) bool {
	for in := range t.outermost.all() {
		for _, r := range in.resources {
			if v, err := in.attribute(r.id, "StreamArn"); r.kind == typeTable && err == nil && v == arn {
				return true
			}
		}
	}
	return false
}

// find returns the function with this id. If there is none, it returns nil and adds an
// error to p.
func find(functions []Function, p *props, id string) *Function {
	for i := range functions {
		if functions[i].ID == id {
			return &functions[i]
		}
	}
	p.fail("FunctionName", errors.New("names no function of this template"))
	return nil
}

// Template.target returns the id of the function that has this name or ARN, from any
// template of the stack; "" if there is no such function.
func (t *Template) target(function string) string {
	for in := range t.outermost.all() {
		for _, r := range in.resources {
			if !isFunction(r.kind) {
				continue
			}
			name, err := in.name(r)
			if err == nil && (function == name || function == in.arn("lambda", "function:"+name)) {
				return in.full(r.id)
			}
		}
	}
	return ""
}
