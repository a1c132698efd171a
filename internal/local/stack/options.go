package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options configure a stack. The zero value runs template.yaml.
type Options struct {
	// Template is the path of the SAM template. Default "template.yaml".
	Template string
	// StackName is the value of AWS::StackName. If the template sets no name for a
	// resource, the resource's name begins with StackName. Two stacks that share a
	// database need different names. Default "local".
	StackName string
	// Parameters are values for the template's parameters.
	Parameters map[string]string
	// Environment holds variables for all functions. They replace all other variables of
	// the same name.
	Environment map[string]string
	// Processes start along with the stack. In the values of Parameters and Environment,
	// {NAME} is replaced by the URL of the process with that name.
	Processes []Process
	// APIPort and ControlPort are ports on 127.0.0.1; 0 is any free port.
	APIPort, ControlPort int
	// TTL turns on the time to live of the tables: DynamoDB Local then deletes
	// expired items within about a second, while AWS takes days.
	TTL bool
	// Watch applies changes while the stack runs. If a function's Go package changes,
	// the stack builds and restarts the function. If a bootstrap that another tool
	// builds changes, the stack restarts its function. If the template changes, the
	// stack replaces the changed parts.
	Watch bool
	// Metrics makes Logs include the functions' metrics, which are lines of JSON.
	Metrics bool
	// Overrides replace timeouts and intervals of the template, usually to shorten them.
	Overrides Overrides
	// Logs gets all output of the stack, the functions and the processes. Only one
	// goroutine at a time writes to Logs. Default os.Stderr.
	Logs io.Writer
}

// Process is a program that runs along with the stack.
type Process struct {
	// Name is the process's key in the ready line.
	Name string
	// Command is the program and its arguments.
	Command []string
	// URL is the process's address. The stack becomes ready after the process has
	// answered at URL. If the port is 0, the stack chooses a free port. The process
	// reads its port from the variable LOCAL_<NAME>_PORT. If URL is empty, the stack
	// doesn't wait for the process.
	URL string

	port net.Listener // holds the port until the process is started
}

// Overrides replace settings of the template; nil fields change nothing.
type Overrides struct {
	// FunctionTimeout is the timeout of all functions.
	FunctionTimeout *time.Duration
	// PerProcess is how many invocations a process of each function runs at a time.
	PerProcess *int
	// LeaseMargin and Grace are passed to the functions, as SAMEKEY_LEASE_MARGIN and
	// SAMEKEY_GRACE.
	LeaseMargin, Grace *time.Duration
	// StreamWindow is the batching window of all streams.
	StreamWindow *time.Duration
	// SweepEvery is the interval of all schedules.
	SweepEvery *time.Duration
}

// ReadOverrides reads the overrides from environment variables. LOCAL_CONCURRENCY sets
// PerProcess. LOCAL_FUNCTION_TIMEOUT, LOCAL_LEASE_MARGIN, LOCAL_GRACE, LOCAL_STREAM_WINDOW
// and LOCAL_SWEEP_EVERY are Go durations. An empty variable sets nothing. The error names
// every bad value.
func ReadOverrides(getenv func(string) string) (Overrides, error) {
	var o Overrides
	var errs []error
	for _, v := range []struct {
		name   string
		target **time.Duration
		zero   bool // whether 0 is valid
	}{
		{"LOCAL_FUNCTION_TIMEOUT", &o.FunctionTimeout, false},
		{"LOCAL_LEASE_MARGIN", &o.LeaseMargin, true},
		{"LOCAL_GRACE", &o.Grace, true},
		{"LOCAL_STREAM_WINDOW", &o.StreamWindow, true},
		{"LOCAL_SWEEP_EVERY", &o.SweepEvery, false},
	} {
		s := getenv(v.name)
		if s == "" {
			continue
		}
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s is %q: not a duration such as 1.5s or 2m", v.name, s))
		case d < 0 || d == 0 && !v.zero:
			errs = append(errs, fmt.Errorf("%s is %q: must be positive", v.name, s))
		default:
			*v.target = &d
		}
	}
	if s := getenv("LOCAL_CONCURRENCY"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			errs = append(errs, fmt.Errorf("LOCAL_CONCURRENCY is %q: not a number of invocations such as 8", s))
		}
		o.PerProcess = &n
	}
	return o, errors.Join(errs...)
}

// reserved holds the keys of the ready line that the stack itself writes. They can't be
// names of processes, because a process's name is a key too.
var reserved = []string{"ready", "api", "apis", "control", "dynamodb", "lambda", "sqs", "table", "ui"}

// withDefaults returns o with defaults for zero fields. It chooses the processes'
// ports. It writes the URLs of processes in place of {NAME} in Parameters and
// Environment.
func (o Options) withDefaults(ctx context.Context) (Options, error) {
	if o.Template == "" {
		o.Template = "template.yaml"
	}
	if o.StackName == "" {
		o.StackName = "local"
	}
	if o.Logs == nil {
		o.Logs = os.Stderr
	}
	var pairs []string
	o.Processes = slices.Clone(o.Processes)
	for i := range o.Processes {
		p := &o.Processes[i]
		if p.Name == "" || slices.Contains(reserved, p.Name) || strings.ContainsAny(p.Name, "{}") {
			return o, fmt.Errorf("a process can't be named %q", p.Name)
		}
		if slices.ContainsFunc(o.Processes[:i], func(q Process) bool { return q.Name == p.Name }) {
			return o, fmt.Errorf("two processes are named %s", p.Name)
		}
		if len(p.Command) == 0 {
			return o, fmt.Errorf("process %s has no command", p.Name)
		}
		if err := p.choosePort(ctx); err != nil {
			return o, fmt.Errorf("process %s: %w", p.Name, err)
		}
		if p.URL != "" {
			pairs = append(pairs, "{"+p.Name+"}", p.URL)
		}
	}
	r := strings.NewReplacer(pairs...)
	o.Parameters, o.Environment = replaceAll(r, o.Parameters), replaceAll(r, o.Environment)
	return o, nil
}

func replaceAll(r *strings.Replacer, values map[string]string) map[string]string {
	values = maps.Clone(values)
	for name, v := range values {
		values[name] = r.Replace(v)
	}
	return values
}
