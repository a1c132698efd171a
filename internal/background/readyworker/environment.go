package readyworker

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// variables are the environment variables of the worker. The package comments of the
// programs named samekey-worker describe these variables.
var variables = []string{
	"SAMEKEY_APP", "SAMEKEY_EVENT_SOURCE", "SAMEKEY_FUNCTIONS", "SAMEKEY_GRACE", "SAMEKEY_KMS_CONTEXT", "SAMEKEY_KMS_KEYS",
	"SAMEKEY_NAMESPACES", "SAMEKEY_SCHEDULE_ROLE", "SAMEKEY_SINKS", "SAMEKEY_SWEEP_LATE", "SAMEKEY_SWEEP_PAGES", "SAMEKEY_TICKETS_URL",
}

// others are variables that begin with SAMEKEY_ and belong to other programs in the
// same stack. The worker ignores these variables.
var others = []string{"SAMEKEY_LEASE_MARGIN"}

// environment reads settings, and remembers what is wrong with them.
type environment struct {
	values map[string]string
	errs   []error
}

func newEnvironment(environ []string) *environment {
	env := &environment{values: make(map[string]string)}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		env.values[name] = value
		if strings.HasPrefix(name, "SAMEKEY_") && !slices.Contains(variables, name) && !slices.Contains(others, name) {
			env.wrong(name, "is not a setting of the worker: it has %s", strings.Join(variables, ", "))
		}
	}
	return env
}

// environment.wrong records what is wrong with a variable, and what to write instead.
func (e *environment) wrong(name, format string, args ...any) {
	e.errs = append(e.errs, fmt.Errorf("%s %s", name, fmt.Sprintf(format, args...)))
}

func (e *environment) err() error { return errors.Join(e.errs...) }

// environment.text returns a setting that may be missing.
func (e *environment) text(name string) string { return e.values[name] }

// environment.required returns a setting that must be set. If it is missing, the error
// contains example, which says what to write.
func (e *environment) required(name, example string) string {
	v := e.values[name]
	if v == "" {
		e.wrong(name, "is not set: write %s", example)
	}
	return v
}

// environment.list returns the entries of a setting, which are separated by commas or
// blanks.
func (e *environment) list(name string) []string {
	return strings.FieldsFunc(e.values[name], func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' })
}

// environment.duration returns a positive time, or 0 if the setting is missing.
func (e *environment) duration(name string) time.Duration {
	v := e.values[name]
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		e.wrong(name, "is %q: write a time above 0 with its unit, as 90s, 5m or 72h", v)
	}
	return d
}

// environment.whole returns a positive whole number, or 0 if the setting is missing.
func (e *environment) whole(name string) int {
	v := e.values[name]
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 || n > 1000 {
		e.wrong(name, "is %q: write a number from 1 to 1000", v)
	}
	return n
}

func isURL(s string) bool { return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://") }
