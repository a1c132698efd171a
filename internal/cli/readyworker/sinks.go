package readyworker

import (
	"cmp"
	"slices"
	"strings"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/sink"
)

const sinksExample = "KIND=sqs:URL, KIND=sns:ARN, KIND=events:BUS or KIND=lambda:FUNCTION, with commas between them"

// sinks are where jobs go. Kinds with the same target have one sink, which keeps
// the order of a group.
func (e *environment) sinks(c clients) jobs.Route {
	const name = "SAMEKEY_SINKS"
	route := make(jobs.Route)
	made := make(map[string]jobs.Sink)
	for _, entry := range e.list(name) {
		kind, target, found := strings.Cut(entry, "=")
		service, address, _ := strings.Cut(target, ":")
		if !found || kind == "" || address == "" {
			e.wrong(name, "has %q: write %s", entry, sinksExample)
			continue
		}
		if _, twice := route[kind]; twice {
			e.wrong(name, "has the kind %q twice: write each kind once", kind)
			continue
		}
		if made[target] == nil {
			made[target] = e.sink(c, name, service, address)
		}
		route[kind] = made[target]
	}
	return route
}

// sink is one of them; nil if there is something wrong with it.
func (e *environment) sink(c clients, name, service, address string) jobs.Sink {
	switch service {
	case "sqs":
		if isURL(address) {
			return sink.NewQueue(c.sqs(), address)
		}
		e.wrong(name, "has sqs:%s: write a queue's URL, as sqs:https://sqs.REGION.amazonaws.com/ACCOUNT/NAME", address)
	case "sns":
		if strings.HasPrefix(address, "arn:") && strings.Contains(address, ":sns:") {
			return sink.NewTopic(c.sns(), address)
		}
		e.wrong(name, "has sns:%s: write a topic's ARN, as sns:arn:aws:sns:REGION:ACCOUNT:NAME", address)
	case "events":
		return sink.NewBus(c.eventBridge(), address, cmp.Or(e.text("SAMEKEY_EVENT_SOURCE"), "samekey"))
	case "lambda":
		return sink.NewFunction(c.lambda(), address)
	default:
		e.wrong(name, "has %s:%s: write %s", service, address, sinksExample)
	}
	return nil
}

// functions are those that may complete operations.
func (e *environment) functions(c clients) completer.Resumer {
	const name = "SAMEKEY_FUNCTIONS"
	all := e.list(name)
	names := make([]string, 0, len(all))
	for _, f := range all {
		plain := completer.FunctionName(f)
		switch {
		case plain == "":
			e.wrong(name, "has %q: write names or ARNs of functions, with commas between them; an alias as NAME:ALIAS", f)
		case slices.Contains(names, plain):
			e.wrong(name, "has the function %q twice: write one alias or version of it", plain)
		}
		names = append(names, plain)
	}
	if len(all) == 0 || len(e.errs) > 0 {
		return completer.Functions{}
	}
	return completer.Invoke(c.resume(), all...)
}
