package metrics

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/metrictable"
)

// The limits of a line in the embedded metric format.
const (
	maxValues    = 100 // values of one metric in one line
	maxDimension = 250 // bytes of a dimension's value; the format allows 1024
)

// level is the log level of each line. If a function logs JSON, Lambda drops lines
// below the function's ApplicationLogLevel. A line without a level counts as INFO, so
// Lambda might drop it, and alarms would get no data.
const level = "WARN"

// line collects the metrics and properties of a log line.
type line struct {
	route  string // value of the dimension Route, or "" if the line has no such dimension
	values map[string][]float64
	extra  map[string]any
}

// line.count adds n to the sum of a metric.
func (l *line) count(name string, n float64) {
	if l.values == nil {
		l.values = make(map[string][]float64)
	}
	if sum := l.values[name]; len(sum) > 0 {
		sum[0] += n
		return
	}
	l.values[name] = []float64{n}
}

func (l *line) measure(name string, v float64) {
	if l.values == nil {
		l.values = make(map[string][]float64)
	}
	l.values[name] = append(l.values[name], v)
}

// line.property sets a property, unless v is "".
func (l *line) property(name string, v any) {
	if v == "" {
		return
	}
	if l.extra == nil {
		l.extra = make(map[string]any)
	}
	l.extra[name] = v
}

// line.encode returns l as one line of the format, or as several lines if a metric has
// more than 100 values. The metrics themselves fit into one line: the format allows
// 100, and Samekey has fewer.
func (l *line) encode(namespace, app string, at time.Time) []byte {
	var out []byte
	left := maps.Clone(l.values)
	for len(left) > 0 {
		names := slices.Sorted(maps.Keys(left))
		now := make(map[string][]float64, len(names))
		for _, name := range names {
			n := min(len(left[name]), maxValues)
			if now[name], left[name] = left[name][:n], left[name][n:]; len(left[name]) == 0 {
				delete(left, name)
			}
		}
		out = append(l.one(out, namespace, app, at, names, now), '\n')
	}
	return out
}

// line.one appends to b one line with the metrics in names.
func (l *line) one(b []byte, namespace, app string, at time.Time, names []string, values map[string][]float64) []byte {
	b = append(b, `{"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, at.UnixMilli(), 10)
	b = append(b, `,"CloudWatchMetrics":[{"Namespace":`...)
	b = quote(b, namespace)
	b = append(b, `,"Dimensions":[["App"]`...)
	if l.route != "" {
		b = append(b, `,["App","Route"]`...)
	}
	b = append(b, `],"Metrics":[`...)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"Name":`...)
		b = quote(b, name)
		b = append(b, `,"Unit":`...)
		b = append(quote(b, cmp.Or(metrictable.Named(name).Unit, "Count")), '}')
	}
	b = append(b, `]}]},"level":"`+level+`","timestamp":"`...)
	b = at.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","App":`...)
	b = quote(b, app)
	if l.route != "" {
		b = append(b, `,"Route":`...)
		b = quote(b, l.route)
	}
	for _, name := range names {
		b = append(quote(append(b, ','), name), ':')
		b = appendValues(b, values[name])
	}
	for _, name := range slices.Sorted(maps.Keys(l.extra)) {
		if _, metric := l.values[name]; metric || name == "_aws" || name == "App" || name == "Route" || name == "level" || name == "timestamp" {
			continue // a property must not replace a member of the format
		}
		v, err := json.Marshal(l.extra[name])
		if err != nil {
			continue // the application's property has no JSON form
		}
		b = append(append(quote(append(b, ','), name), ':'), v...)
	}
	return append(b, '}')
}

func appendValues(b []byte, values []float64) []byte {
	if len(values) == 1 {
		return strconv.AppendFloat(b, values[0], 'f', -1, 64)
	}
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return append(b, ']')
}

func quote(b []byte, s string) []byte {
	plain := func(c rune) bool { return c >= ' ' && c < 0x7f && c != '"' && c != '\\' }
	if !strings.ContainsFunc(s, func(c rune) bool { return !plain(c) }) {
		return append(append(append(b, '"'), s...), '"')
	}
	q, _ := json.Marshal(s) // a string always has a JSON form
	return append(b, q...)
}

// dimension returns s as a valid value of a dimension: printable ASCII, not empty, not too
// long.
func dimension(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, s[:min(len(s), maxDimension)])
	if strings.TrimSpace(s) == "" {
		return "none"
	}
	return s
}

// milliseconds returns d in milliseconds. It drops fractions of a microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
