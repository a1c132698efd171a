package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/ui"
	"github.com/samekey/samekey/internal/local/stack"
)

const localLong = `Runs the functions of a SAM template as real bootstraps: behind an HTTP front,
fed by DynamoDB Local's streams, by local queues and by schedules. Everything is
on 127.0.0.1. When all is ready, one line of JSON on standard output tells where;
logs go to standard error. Ends with Ctrl-C or SIGTERM.

Environment: LOCAL_API_PORT, LOCAL_CONTROL_PORT, LOCAL_UI_PORT; AWS_ENDPOINT_URL_DYNAMODB and
AWS_ENDPOINT_URL_DYNAMODB_STREAMS, to use a database that is there, and
AWS_ENDPOINT_URL_SQS, for queues; LOCAL_CONCURRENCY, a number; and, as durations
such as 500ms or 2m, LOCAL_FUNCTION_TIMEOUT, LOCAL_LEASE_MARGIN, LOCAL_GRACE,
LOCAL_STREAM_WINDOW and LOCAL_SWEEP_EVERY. See docs/use/local.md.`

// defaultTemplate is in the present folder.
const defaultTemplate = "template.yaml"

func newLocal(env environment) *cobra.Command {
	flags := newLocalFlags(env)
	cmd := &cobra.Command{
		Use:   "local [FLAGS]",
		Short: "Run a SAM template's functions on this machine",
		Long:  localLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrongCallf("%q is not a flag; --template FILE names a template", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts, err := flags.options()
			if err != nil {
				return wrongCall(err)
			}
			ctx := cmd.Context()
			if flags.follow {
				var cancel context.CancelFunc
				ctx, cancel = withParent(ctx)
				defer cancel()
			}
			return runLocal(ctx, env, opts, flags.uiPort)
		},
	}
	flags.register(cmd.Flags())
	return exitCodes(cmd, map[int]string{exitDone: "ended by a signal"})
}

func runLocal(ctx context.Context, env environment, opts stack.Options, uiPort int) error {
	running, err := stack.Start(ctx, opts)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // told to end while it started
		}
		if _, missing := os.Stat(opts.Template); opts.Template == defaultTemplate && errors.Is(missing, fs.ErrNotExist) {
			err = fmt.Errorf("there is no %s here: go to its folder, name it by --template FILE, or begin with samekey init", opts.Template)
		}
		return err
	}
	ready := running.Ready()
	page, err := localPage(ctx, env, running, uiPort)
	if err != nil {
		return errors.Join(err, running.Close())
	}
	served := make(chan error, 1)
	if page == nil {
		served <- nil
	} else {
		ready.UI = page.URL()
		go func() { served <- page.Serve(ctx) }()
	}
	env.note("ready at %s; Ctrl-C ends it. For samekey list, get and the other commands, in another terminal:", ready.API)
	for _, line := range running.Exports() {
		env.note("  %s", line)
	}
	if err := env.say("%s", ready); err != nil {
		return errors.Join(err, running.Close())
	}
	<-ctx.Done()
	return errors.Join(<-served, running.Close())
}

// localPage is the page about the stack's main table; nil for a stack without tables, or
// whose table has other keys than records.
func localPage(ctx context.Context, env environment, running *stack.Stack, port int) (*ui.Server, error) {
	ready := running.Ready()
	if !ready.Records {
		return nil, nil
	}
	source, err := ui.NewTable(running.Database(), ready.Table, ui.TableOptions{
		By: operatorName(env),
		Changes: func(ctx context.Context, started func(), changed func([]string)) error {
			return noStream(running.Follow(ctx, started, changed))
		},
	})
	if err != nil {
		return nil, err
	}
	return ui.Listen(ctx, port, 0, source)
}

// noStream has the page understand a stack that has no stream to follow.
func noStream(err error) error {
	if errors.Is(err, stack.ErrNoStream) {
		return ui.ErrNoStream
	}
	return err
}

// localFlags are the flags of samekey local. Their defaults are in the environment.
type localFlags struct {
	opts            stack.Options
	follow          bool // end with the program that started this one
	uiPort          int
	processes, urls []named
	bad             error // of the environment
}

func newLocalFlags(env environment) *localFlags {
	f := &localFlags{}
	overrides, err := stack.ReadOverrides(env.getenv)
	apiPort, err1 := portFrom(env, "LOCAL_API_PORT", 3000)
	controlPort, err2 := portFrom(env, "LOCAL_CONTROL_PORT", 3002)
	uiPort, err3 := portFrom(env, "LOCAL_UI_PORT", 0)
	f.uiPort, f.bad = uiPort, errors.Join(err, err1, err2, err3)
	f.opts = stack.Options{
		APIPort: apiPort, ControlPort: controlPort, Parameters: make(map[string]string), Environment: make(map[string]string),
		Overrides: overrides, Logs: env.screen,
	}
	return f
}

func (f *localFlags) register(fs *pflag.FlagSet) {
	opts := &f.opts
	fs.StringVar(&opts.Template, "template", defaultTemplate, "the SAM template `FILE`")
	fs.StringVar(&opts.StackName, "stack-name", "local", "AWS::StackName, with which names begin")
	fs.IntVar(&opts.APIPort, "api-port", opts.APIPort, "port of the APIs; 0 is any free one")
	fs.IntVar(&opts.ControlPort, "control-port", opts.ControlPort, "port of the control server; 0 is any free one")
	fs.IntVar(&f.uiPort, "ui-port", f.uiPort, "port of the page about the table's requests; 0 is any free one")
	fs.BoolVar(&opts.TTL, "ttl", false, "turn on the tables' time to live: items go within a second after they expire, not days")
	fs.BoolVar(&opts.Metrics, "metrics", false, "log the functions' metrics too: lines of JSON for CloudWatch")
	fs.BoolVar(&opts.Watch, "watch", false, "build and restart what changes: functions by their Go files or bootstraps, and all by the template")
	fs.BoolVar(&f.follow, "with-parent", false, "end when the program that started this one ends or, on Linux, make got a SIGINT")
	fs.Func("parameter", "a parameter of the template, `NAME=VALUE`; may be repeated", pair(opts.Parameters))
	fs.Func("env", "a variable for all functions, `NAME=VALUE`; may be repeated", pair(opts.Environment))
	fs.Func("process", "a program to run along, `NAME=COMMAND`, split at spaces; may be repeated", add(&f.processes))
	fs.Func("process-url", "where a process answers, `NAME=URL`; {NAME} in --parameter and --env stands for it", add(&f.urls))
}

// options are those of flags and environment. Flags win.
func (f *localFlags) options() (stack.Options, error) {
	if f.bad != nil {
		return f.opts, f.bad
	}
	opts := f.opts
	var err error
	opts.Processes, err = joinProcesses(f.processes, f.urls)
	return opts, err
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
			return nil, fmt.Errorf("--process-url %s: there is no --process of that name", u.name)
		}
		out[i].URL = u.value
	}
	return out, nil
}
