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

const localLong = `Runs the functions of a SAM template on 127.0.0.1, with an HTTP API in front. Queues,
schedules and DynamoDB Local (with streams) run too. When all functions are ready, samekey
local prints one line of JSON with the addresses to standard output. Logs go to standard
error. Ctrl-C stops samekey local.

Environment variables, all optional:
  LOCAL_API_PORT, LOCAL_CONTROL_PORT, LOCAL_UI_PORT                  ports
  LOCAL_CONCURRENCY                                                  a number
  LOCAL_FUNCTION_TIMEOUT, LOCAL_LEASE_MARGIN, LOCAL_GRACE,
  LOCAL_STREAM_WINDOW, LOCAL_SWEEP_EVERY                             times, such as 500ms or 2m
  AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL_DYNAMODB_STREAMS       URLs of a database to use instead of DynamoDB Local
  AWS_ENDPOINT_URL_SQS                                               URL of a queue service to use instead of local queues
See docs/use/local.md.`

// defaultTemplate is the default of --template, in the current folder.
const defaultTemplate = "template.yaml"

func newLocal(env environment) *cobra.Command {
	flags := newLocalFlags(env)
	cmd := &cobra.Command{
		Use:   "local [FLAGS]",
		Short: "Run the functions of a SAM template on this machine",
		Long:  localLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrongCallf("unexpected argument %q; to name a template, give --template FILE", args[0])
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
			return nil //nolint:nilerr // a signal ended the start
		}
		if _, missing := os.Stat(opts.Template); opts.Template == defaultTemplate && errors.Is(missing, fs.ErrNotExist) {
			err = fmt.Errorf("no %s in this folder: change the folder, give --template FILE, or run samekey init", opts.Template)
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
	env.note("ready at %s; Ctrl-C stops samekey local. To use samekey list and other commands in another terminal, first run there:", ready.API)
	for _, line := range running.Exports() {
		env.note("  %s", line)
	}
	if err := env.say("%s", ready); err != nil {
		return errors.Join(err, running.Close())
	}
	<-ctx.Done()
	return errors.Join(<-served, running.Close())
}

// localPage returns the page about the stack's main table. It returns nil if there is no table, or
// if the table can't hold records.
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

// noStream replaces stack.ErrNoStream by ui.ErrNoStream.
func noStream(err error) error {
	if errors.Is(err, stack.ErrNoStream) {
		return ui.ErrNoStream
	}
	return err
}

// localFlags holds the flags of samekey local. The defaults of the ports come from the environment.
type localFlags struct {
	opts            stack.Options
	follow          bool // samekey ends when its parent process ends
	uiPort          int
	processes, urls []named
	bad             error // an error in the environment variables
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
	fs.StringVar(&opts.Template, "template", defaultTemplate, "SAM template `FILE`")
	fs.StringVar(&opts.StackName, "stack-name", "local", "value of AWS::StackName, the prefix of resource names")
	fs.IntVar(&opts.APIPort, "api-port", opts.APIPort, "port of the APIs; 0 takes any free port")
	fs.IntVar(&opts.ControlPort, "control-port", opts.ControlPort, "port of the control server; 0 takes any free port")
	fs.IntVar(&f.uiPort, "ui-port", f.uiPort, "port of the page of samekey ui; 0 takes any free port")
	fs.BoolVar(&opts.TTL, "ttl", false, "turn on TTL: DynamoDB Local removes items within a second after they expire")
	fs.BoolVar(&opts.Metrics, "metrics", false, "also log the functions' metrics (lines of JSON for CloudWatch)")
	fs.BoolVar(&opts.Watch, "watch", false, "rebuild and restart a function when its Go files change; when the template changes, replace changed functions and their events")
	fs.BoolVar(&f.follow, "with-parent", false, "end when the parent process ends; on Linux, also when the parent is the program make and gets SIGINT")
	fs.Func("parameter", "set a parameter of the template, `NAME=VALUE`; may be repeated", pair(opts.Parameters))
	fs.Func("env", "set a variable of all functions, `NAME=VALUE`; may be repeated", pair(opts.Environment))
	fs.Func("process", "also run a program, `NAME=COMMAND` (the command is split at spaces); may be repeated", add(&f.processes))
	fs.Func("process-url", "URL of a --process, `NAME=URL`; the URL replaces {NAME} in --parameter and --env", add(&f.urls))
}

// localFlags.options returns the options from flags and environment. A flag has precedence
// over its environment variable. But an invalid variable is an error even if the flag is
// given.
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
		return 0, fmt.Errorf("%s is %q: give a port, 0 to 65535", name, s)
	}
	return port, nil
}

type named struct{ name, value string }

func splitPair(s string) (named, error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return named{}, errors.New("must be NAME=VALUE")
	}
	return named{name, value}, nil
}

// pair(into) returns a function that reads NAME=VALUE from a flag and adds it to the map.
func pair(into map[string]string) func(string) error {
	return func(s string) error {
		p, err := splitPair(s)
		if err == nil {
			into[p.name] = p.value
		}
		return err
	}
}

// add(into) returns a function that reads NAME=VALUE from a flag and appends it to the
// list.
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
			return nil, fmt.Errorf("--process-url %s: no --process has this name", u.name)
		}
		out[i].URL = u.value
	}
	return out, nil
}
