// Package emf is for tests. It parses log lines in CloudWatch's embedded metric format, and checks
// them against the specification.
package emf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Line is a log line in the embedded metric format.
type Line struct {
	At         time.Time
	Namespace  string
	Dimensions []map[string]string  // one map for each set of dimensions: name → value
	Values     map[string][]float64 // values by metric name
	Units      map[string]string
	Properties map[string]any // the other members, without _aws
}

// Sum returns the sum of a metric's values.
func (l *Line) Sum(name string) (sum float64) {
	for _, v := range l.Values[name] {
		sum += v
	}
	return sum
}

// Sum returns the sum of a metric's values in all the lines.
func Sum(lines []Line, name string) (sum float64) {
	for i := range lines {
		sum += lines[i].Sum(name)
	}
	return sum
}

// The limits of the specification.
const (
	maxEvent      = 256 << 10
	maxMetrics    = 100
	maxValues     = 100
	maxDimensions = 30
	maxName       = 1024
	past, future  = 14 * 24 * time.Hour, 2 * time.Hour
)

// units has CloudWatch's units.
var units = strings.Fields("Seconds Microseconds Milliseconds Bytes Kilobytes Megabytes Gigabytes Terabytes Bits Kilobits Megabits " +
	"Gigabits Terabits Percent Count Bytes/Second Kilobytes/Second Megabytes/Second Gigabytes/Second Terabytes/Second Bits/Second " +
	"Kilobits/Second Megabits/Second Gigabits/Second Terabits/Second Count/Second None")

// Parse reads every line of a log, and returns the valid lines. The error names each
// line that breaks a rule of the format.
func Parse(log []byte) ([]Line, error) {
	var lines []Line
	var errs []error
	for raw := range bytes.Lines(log) {
		l, err := parse(raw)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: in %s", err, raw))
			continue
		}
		lines = append(lines, l)
	}
	return lines, errors.Join(errs...)
}

type directive struct {
	Namespace  *string
	Dimensions [][]string
	Metrics    []struct {
		Name              string
		Unit              string
		StorageResolution *int
	}
}

func parse(raw []byte) (Line, error) {
	var head struct {
		AWS *struct {
			Timestamp         *int64
			CloudWatchMetrics []json.RawMessage
		} `json:"_aws"`
	}
	var root map[string]any
	if err := errors.Join(json.Unmarshal(raw, &root), json.Unmarshal(raw, &head), unique(raw)); err != nil {
		return Line{}, err
	}
	switch {
	case len(raw) > maxEvent:
		return Line{}, fmt.Errorf("%d bytes, at most %d", len(raw), maxEvent)
	case !bytes.HasSuffix(raw, []byte("\n")):
		return Line{}, errors.New("the line has no end")
	case head.AWS == nil || head.AWS.Timestamp == nil:
		return Line{}, errors.New("no _aws.Timestamp")
	case len(head.AWS.CloudWatchMetrics) != 1:
		return Line{}, fmt.Errorf("%d directives, want one", len(head.AWS.CloudWatchMetrics))
	}
	var d directive
	strict := json.NewDecoder(bytes.NewReader(head.AWS.CloudWatchMetrics[0]))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&d); err != nil {
		return Line{}, err
	}
	l := Line{At: time.UnixMilli(*head.AWS.Timestamp), Values: make(map[string][]float64), Units: make(map[string]string), Properties: make(map[string]any)}
	if age := time.Since(l.At); age > past || age < -future {
		return Line{}, fmt.Errorf("the time is %v", l.At)
	}
	if d.Namespace == nil || *d.Namespace == "" || len(*d.Namespace) > maxName {
		return Line{}, errors.New("no namespace")
	}
	l.Namespace = *d.Namespace
	taken := map[string]bool{"_aws": true}
	if err := l.dimensions(&d, root, taken); err != nil {
		return Line{}, err
	}
	if err := l.metrics(&d, root, taken); err != nil {
		return Line{}, err
	}
	for name, v := range root {
		if !taken[name] {
			l.Properties[name] = v
		}
	}
	return l, nil
}

func (l *Line) dimensions(d *directive, root map[string]any, taken map[string]bool) error {
	if len(d.Dimensions) == 0 {
		return errors.New("no dimensions")
	}
	for _, set := range d.Dimensions {
		if len(set) > maxDimensions {
			return fmt.Errorf("%d dimensions in a set, at most %d", len(set), maxDimensions)
		}
		values := make(map[string]string)
		for _, name := range set {
			v, isText := root[name].(string)
			visible := !strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c > '~' })
			if !isText || strings.TrimSpace(v) == "" || len(v) > maxName || !visible || len(name) > 250 || strings.HasPrefix(name, ":") {
				return fmt.Errorf("the dimension %q has the value %v", name, root[name])
			}
			values[name], taken[name] = v, true
		}
		if slices.ContainsFunc(l.Dimensions, func(other map[string]string) bool { return fmt.Sprint(other) == fmt.Sprint(values) }) {
			return fmt.Errorf("the dimensions %v twice", set)
		}
		l.Dimensions = append(l.Dimensions, values)
	}
	return nil
}

func (l *Line) metrics(d *directive, root map[string]any, taken map[string]bool) error {
	if n := len(d.Metrics); n == 0 || n > maxMetrics {
		return fmt.Errorf("%d metrics, 1 to %d will do", n, maxMetrics)
	}
	for _, m := range d.Metrics {
		switch {
		case m.Name == "" || len(m.Name) > maxName || taken[m.Name]:
			return fmt.Errorf("the metric %q is named twice, is a dimension, or has no good name", m.Name)
		case !slices.Contains(units, m.Unit):
			return fmt.Errorf("the metric %q has the unit %q", m.Name, m.Unit)
		case m.StorageResolution != nil && *m.StorageResolution != 1 && *m.StorageResolution != 60:
			return fmt.Errorf("the metric %q has the resolution %d", m.Name, *m.StorageResolution)
		}
		list, isList := root[m.Name].([]any)
		if !isList {
			list = []any{root[m.Name]}
		}
		if len(list) == 0 || len(list) > maxValues {
			return fmt.Errorf("the metric %q has %d values, at most %d", m.Name, len(list), maxValues)
		}
		for _, v := range list {
			number, isNumber := v.(float64)
			if !isNumber {
				return fmt.Errorf("the metric %q has the value %v", m.Name, v)
			}
			l.Values[m.Name] = append(l.Values[m.Name], number)
		}
		l.Units[m.Name], taken[m.Name] = m.Unit, true
	}
	return nil
}

// unique returns an error if two members of the outermost object have the same name.
func unique(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not an object")
	}
	seen := make(map[string]bool)
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		if seen[name.(string)] {
			return fmt.Errorf("the member %q is there twice", name)
		}
		seen[name.(string)] = true
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return err
		}
	}
	return nil
}
