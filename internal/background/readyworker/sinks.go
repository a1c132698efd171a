package readyworker

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/base/functionname"
)

// target is a type of sink. An entry KIND=NAME:ADDRESS in SAMEKEY_SINKS sends jobs of
// the kind KIND to the sink at ADDRESS. NAME is the name of the target.
type target struct {
	name    string
	address string // the word for an address in errors, such as ARN
	actions string // the IAM actions that the sink needs; SinksPolicy in samekey.yaml must allow them
	valid   func(address string) bool
	write   string // for errors: what to write in place of an address that is not valid
	sink    func(c clients, address string, o choice) jobs.Sink
}

// choice holds a sink's settings that have no environment variable. Only a program with
// its own main can set them.
type choice struct {
	fairBy        func(jobs.Delivery) string
	withoutTenant bool
}

var targets = []target{
	{
		"sqs", "URL", "sqs:SendMessage", isURL, "a queue's URL, as sqs:https://sqs.REGION.amazonaws.com/ACCOUNT/NAME",
		func(c clients, address string, o choice) jobs.Sink {
			return sink.NewQueue(c.sqs(), address, func(q *sink.QueueOptions) {
				if !strings.HasSuffix(address, ".fifo") {
					q.FairBy = o.fairBy
				}
			})
		},
	},
	{
		"sns", "ARN", "sns:Publish", isTopic, "a topic's ARN, as sns:arn:aws:sns:REGION:ACCOUNT:NAME",
		func(c clients, address string, o choice) jobs.Sink {
			return sink.NewTopic(c.sns(), address, func(t *sink.TopicOptions) {
				if !strings.HasSuffix(address, ".fifo") {
					t.FairBy = o.fairBy
				}
			})
		},
	},
	{
		"events", "BUS", "events:DescribeEventBus events:PutEvents", anything, "",
		func(c clients, address string, _ choice) jobs.Sink {
			return sink.NewBus(c.eventBridge(), address, cmp.Or(c.env.text("SAMEKEY_EVENT_SOURCE"), "samekey"))
		},
	},
	{
		"lambda", "FUNCTION", "lambda:InvokeFunction", anything, "",
		func(c clients, address string, o choice) jobs.Sink {
			return sink.NewFunction(c.lambda(), address, func(f *sink.FunctionOptions) { f.WithoutTenant = o.withoutTenant })
		},
	},
	{
		"durable", "FUNCTION:ALIAS", "lambda:InvokeFunction", isQualified, "a durable function with its version or alias, as durable:NAME:ALIAS",
		func(c clients, address string, o choice) jobs.Sink {
			return sink.NewFunction(c.lambda(), address, func(f *sink.FunctionOptions) { f.Durable, f.WithoutTenant = true, o.withoutTenant })
		},
	},
	{
		"states", "ARN", "states:DescribeExecution states:DescribeStateMachine states:StartExecution", isMachine,
		"a state machine's ARN, as states:arn:aws:states:REGION:ACCOUNT:stateMachine:NAME",
		func(c clients, address string, _ choice) jobs.Sink {
			return sink.NewStateMachine(c.states(), address)
		},
	},
}

func isQualified(function string) bool {
	name, qualifier := functionname.Split(function)
	return name != "" && qualifier != ""
}

func isMachine(address string) bool {
	p := strings.Split(address, ":")
	return (len(p) == 7 || len(p) == 8) && p[0] == "arn" && p[2] == "states" && p[5] == "stateMachine" && p[6] != "" && p[len(p)-1] != "" && !strings.Contains(address, "/")
}

func isTopic(address string) bool {
	return strings.HasPrefix(address, "arn:") && strings.Contains(address, ":sns:")
}

func anything(string) bool { return true }

// sinksExample lists the valid forms of an entry, for errors.
var sinksExample = func() string {
	forms := make([]string, len(targets))
	for i, t := range targets {
		forms[i] = "KIND=" + t.name + ":" + t.address
	}
	last := len(forms) - 1
	return strings.Join(forms[:last], ", ") + " or " + forms[last] + ", with commas between them"
}()

// environment.sinks returns the sink of each kind of job. Kinds with the same
// NAME:ADDRESS share one sink, so that jobs of a group keep their order. If some of
// these kinds are in Settings.WithoutTenant, those kinds share a second sink.
func (e *environment) sinks(c clients) jobs.Route {
	const name = "SAMEKEY_SINKS"
	route := make(jobs.Route)
	maps.Copy(route, c.own.Sinks)
	type one struct {
		to            string
		withoutTenant bool
	}
	made := make(map[one]jobs.Sink)
	for _, entry := range e.list(name) {
		kind, to, _ := strings.Cut(entry, "=")
		of, address, _ := strings.Cut(to, ":")
		if kind == "" || address == "" {
			e.wrong(name, "has %q: write %s", entry, sinksExample)
			continue
		}
		if _, twice := route[kind]; twice {
			e.wrong(name, "has the kind %q twice: write each kind once", kind)
			continue
		}
		at := one{to, slices.Contains(c.own.WithoutTenant, kind)}
		if made[at] == nil {
			made[at] = e.sink(c, name, of, address, choice{c.own.FairBy, at.withoutTenant})
		}
		route[kind] = made[at]
	}
	return route
}

// environment.sink returns the sink of an entry, or nil if the entry is wrong.
func (e *environment) sink(c clients, name, of, address string, o choice) jobs.Sink {
	i := slices.IndexFunc(targets, func(t target) bool { return t.name == of })
	switch {
	case i < 0:
		e.wrong(name, "has %s:%s: write %s", of, address, sinksExample)
	case of == "sqs" && strings.EqualFold(strings.TrimSuffix(address, "/"), strings.TrimSuffix(e.text("SAMEKEY_TICKETS_URL"), "/")):
		e.wrong(name, "has %s:%s: write another queue than SAMEKEY_TICKETS_URL, whose messages the worker takes for tickets", of, address)
	case !targets[i].valid(address):
		e.wrong(name, "has %s:%s: write %s", of, address, targets[i].write)
	default:
		return targets[i].sink(c, address, o)
	}
	return nil
}

func (e *environment) functions(c clients) completer.Resumer {
	const name = "SAMEKEY_FUNCTIONS"
	all := e.list(name)
	names := make([]string, 0, len(all))
	for _, f := range all {
		plain, _ := functionname.Split(f)
		switch {
		case plain == "":
			e.wrong(name, "has %q: write names or ARNs of functions, with commas between them; an alias as NAME:ALIAS", f)
		case slices.Contains(names, plain):
			e.wrong(name, "has the function %q twice: write one alias or version of it", plain)
		}
		names = append(names, plain)
	}
	if len(e.errs) > 0 {
		return completer.Functions{}
	}
	functions := completer.Functions{}
	if len(all) > 0 {
		functions = completer.Invoke(c.resume(), all...)
	}
	for f, resume := range c.own.Resume {
		functions[f] = completer.InProcess(resume)
	}
	for former, present := range c.own.Former {
		if functions[present] == nil {
			e.wrong(name, "lacks %q, the present name of %q in Options.Former: write it without its alias there", present, former)
		}
		functions[former] = functions[present]
	}
	return functions
}
