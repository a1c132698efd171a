package readyworker

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// variables are those of the lists in the programs' comments.
var variables = []string{
	"SAMEKEY_APP", "SAMEKEY_EVENT_SOURCE", "SAMEKEY_FUNCTIONS", "SAMEKEY_GRACE", "SAMEKEY_KMS_CONTEXT", "SAMEKEY_KMS_KEYS",
	"SAMEKEY_NAMESPACES", "SAMEKEY_SCHEDULE_ROLE", "SAMEKEY_SINKS", "SAMEKEY_SWEEP_LATE", "SAMEKEY_SWEEP_PAGES", "SAMEKEY_TICKETS_URL",
}

// others begin like them and are of other programs of the same stack.
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

// wrong notes what is wrong with a variable, and what to write.
func (e *environment) wrong(name, format string, args ...any) {
	e.errs = append(e.errs, fmt.Errorf("%s %s", name, fmt.Sprintf(format, args...)))
}

func (e *environment) err() error { return errors.Join(e.errs...) }

// text is a setting that may be missing.
func (e *environment) text(name string) string { return e.values[name] }

// required is a setting that must be there; example is one.
func (e *environment) required(name, example string) string {
	v := e.values[name]
	if v == "" {
		e.wrong(name, "is not set: write %s", example)
	}
	return v
}

// list is a setting with commas or blanks between its entries.
func (e *environment) list(name string) []string {
	return strings.FieldsFunc(e.values[name], func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' })
}

// duration is a positive time, 0 if it isn't set.
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

// whole is a positive number, 0 if it isn't set.
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
