package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/samekey/samekey/internal/local/stack"
)

var localCommand = command{name: "local", summary: "run a SAM template's functions on this machine", run: runLocal}

const localUsage = `usage: samekey local [FLAGS]

Runs the functions of a SAM template as real bootstraps: behind an HTTP front,
fed by DynamoDB Local's streams, by local queues and by schedules. Everything is
on 127.0.0.1. When all is ready, one line of JSON on standard output tells where;
logs go to standard error. Ends with Ctrl-C or SIGTERM.

Environment: LOCAL_API_PORT, LOCAL_CONTROL_PORT; AWS_ENDPOINT_URL_DYNAMODB and
AWS_ENDPOINT_URL_DYNAMODB_STREAMS, to use a database that is there, and
AWS_ENDPOINT_URL_SQS, for queues; LOCAL_CONCURRENCY, a number; and, as durations
such as 500ms or 2m, LOCAL_FUNCTION_TIMEOUT, LOCAL_LEASE_MARGIN, LOCAL_GRACE,
LOCAL_STREAM_WINDOW and LOCAL_SWEEP_EVERY. See docs/local.md.

Flags:
`

// defaultTemplate is in the present folder.
const defaultTemplate = "template.yaml"

func runLocal(ctx context.Context, env environment, args []string) int {
	opts, follow, err := localOptions(env, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(env.stderr, "samekey local: %v\n", err)
		return 2
	}
	if follow {
		var cancel context.CancelFunc
		ctx, cancel = withParent(ctx)
		defer cancel()
	}
	running, err := stack.Start(ctx, opts)
	if err != nil {
		if ctx.Err() != nil {
			return 0 // told to end while it started
		}
		if _, missing := os.Stat(opts.Template); opts.Template == defaultTemplate && errors.Is(missing, fs.ErrNotExist) {
			err = fmt.Errorf("there is no %s here: go to its folder, name it by -template FILE, or begin with samekey init", opts.Template)
		}
		fmt.Fprintf(env.stderr, "samekey local: %v\n", err)
		return 1
	}
	fmt.Fprintln(env.stdout, running.Ready())
	<-ctx.Done()
	if err := running.Close(); err != nil {
		fmt.Fprintf(env.stderr, "samekey local: %v\n", err)
		return 1
	}
	return 0
}

// localOptions reads flags and environment. Flags win. follow says that the stack
// ends with the program that started this one.
func localOptions(env environment, args []string) (opts stack.Options, follow bool, err error) {
	overrides, err := stack.ReadOverrides(env.getenv)
	if err != nil {
		return opts, false, err
	}
	apiPort, err1 := portFrom(env, "LOCAL_API_PORT", 3000)
	controlPort, err2 := portFrom(env, "LOCAL_CONTROL_PORT", 3002)
	if err := errors.Join(err1, err2); err != nil {
		return opts, false, err
	}
	opts = stack.Options{
		Parameters: make(map[string]string), Environment: make(map[string]string),
		Overrides: overrides, Logs: env.stderr,
	}
	fs := flag.NewFlagSet("samekey local", flag.ContinueOnError)
	fs.SetOutput(env.stderr)
	fs.Usage = func() {
		fmt.Fprint(env.stderr, localUsage)
		fs.PrintDefaults()
	}
	fs.StringVar(&opts.Template, "template", defaultTemplate, "the SAM template `FILE`")
	fs.StringVar(&opts.StackName, "stack-name", "local", "AWS::StackName, with which names begin")
	fs.IntVar(&opts.APIPort, "api-port", apiPort, "port of the APIs; 0 is any free one")
	fs.IntVar(&opts.ControlPort, "control-port", controlPort, "port of the control server; 0 is any free one")
	fs.BoolVar(&opts.TTL, "ttl", false, "turn on the tables' time to live: items go within a second after they expire, not days")
	fs.BoolVar(&opts.Watch, "watch", false, "build and restart what changes: functions by their Go files or bootstraps, and all by the template")
	fs.BoolVar(&follow, "with-parent", false, "end when the program that started this one ends or, on Linux, make got a SIGINT")
	fs.Func("parameter", "a parameter of the template, `NAME=VALUE`; may be repeated", pair(opts.Parameters))
	fs.Func("env", "a variable for all functions, `NAME=VALUE`; may be repeated", pair(opts.Environment))
	var processes, urls []named
	fs.Func("process", "a program to run along, `NAME=COMMAND`, split at spaces; may be repeated", add(&processes))
	fs.Func("process-url", "where a process answers, `NAME=URL`; {NAME} in -parameter and -env stands for it", add(&urls))
	if err := fs.Parse(args); err != nil {
		return opts, false, err
	}
	if fs.NArg() > 0 {
		return opts, false, fmt.Errorf("%q is not a flag; -template FILE names a template", fs.Arg(0))
	}
	opts.Processes, err = joinProcesses(processes, urls)
	return opts, follow, err
}

func portFrom(env environment, name string, otherwise int) (int, error) {
	s := env.getenv(name)
	if s == "" {
		return otherwise, nil
	}
	port, err := strconv.Atoi(s)
	if err != nil || port < 0 || port > 65535 {
		return 0, fmt.Errorf("%s is %q: not a port", name, s)
	}
	return port, nil
}

type named struct{ name, value string }

func splitPair(s string) (named, error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return named{}, errors.New("has to be NAME=VALUE")
	}
	return named{name, value}, nil
}

// pair returns the setter of a flag that fills a map.
func pair(into map[string]string) func(string) error {
	return func(s string) error {
		p, err := splitPair(s)
		if err == nil {
			into[p.name] = p.value
		}
		return err
	}
}

// add returns the setter of a flag that fills a list.
func add(into *[]named) func(string) error {
	return func(s string) error {
		p, err := splitPair(s)
		if err == nil {
			*into = append(*into, p)
		}
		return err
	}
}

func joinProcesses(processes, urls []named) ([]stack.Process, error) {
	out := make([]stack.Process, 0, len(processes))
	byName := make(map[string]int)
	for _, p := range processes {
		byName[p.name] = len(out)
		out = append(out, stack.Process{Name: p.name, Command: strings.Fields(p.value)})
	}
	for _, u := range urls {
		i, ok := byName[u.name]
		if !ok {
			return nil, fmt.Errorf("-process-url %s: there is no -process of that name", u.name)
		}
		out[i].URL = u.value
	}
	return out, nil
}
