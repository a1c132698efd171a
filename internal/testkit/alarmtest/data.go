package alarmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Data holds values of metrics. The zero Data is empty.
type Data struct{ points map[string][]point }

type point struct {
	at    time.Time
	value float64
}

// Add adds one value of a metric at the time at, as an AWS service would.
func (d *Data) Add(m Metric, at time.Time, value float64) {
	if d.points == nil {
		d.points = make(map[string][]point)
	}
	d.points[m.String()] = append(d.points[m.String()], point{at, value})
}

// Forget removes all values that are older than the given time.
func (d *Data) Forget(before time.Time) {
	for name, all := range d.points {
		d.points[name] = slices.DeleteFunc(all, func(p point) bool { return p.at.Before(before) })
	}
}

// EMF adds the values of lines in the embedded metric format, and skips other lines.
func (d *Data) EMF(lines []byte) error {
	return d.EMFAt(lines, time.Time{})
}

// EMFAt is [Data.EMF] for a run in virtual time. If at isn't zero, EMFAt uses at as the
// time of every value.
func (d *Data) EMFAt(lines []byte, at time.Time) error {
	for line := range bytes.Lines(lines) {
		var emf struct {
			AWS *struct {
				Timestamp         int64
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		var values map[string]json.RawMessage
		if json.Unmarshal(line, &emf) != nil || emf.AWS == nil {
			continue
		}
		if err := json.Unmarshal(line, &values); err != nil {
			return err
		}
		when := at
		if when.IsZero() {
			when = time.UnixMilli(emf.AWS.Timestamp)
		}
		for _, directive := range emf.AWS.CloudWatchMetrics {
			for _, keys := range directive.Dimensions {
				dims := make(map[string]string)
				for _, key := range keys {
					var value string
					if err := json.Unmarshal(values[key], &value); err != nil {
						return fmt.Errorf("dimension %s: %w", key, err)
					}
					dims[key] = value
				}
				for _, m := range directive.Metrics {
					all, err := numbers(values[m.Name])
					if err != nil {
						return fmt.Errorf("metric %s: %w", m.Name, err)
					}
					for _, v := range all {
						d.Add(Metric{directive.Namespace, m.Name, dims}, when, v)
					}
				}
			}
		}
	}
	return nil
}

// numbers reads a metric's value: a number, or a list of numbers.
func numbers(raw json.RawMessage) ([]float64, error) {
	var one float64
	if err := json.Unmarshal(raw, &one); err == nil {
		return []float64{one}, nil
	}
	var many []float64
	err := json.Unmarshal(raw, &many)
	return many, err
}

// Data.stat returns a statistic of a metric's values in [from, to). It returns false if
// there are no values.
func (d Data) stat(m Metric, stat string, from, to time.Time) (float64, bool) {
	n, sum, low, high := 0, 0.0, 0.0, 0.0
	for _, p := range d.points[m.String()] {
		if p.at.Before(from) || !p.at.Before(to) {
			continue
		}
		if n == 0 {
			low, high = p.value, p.value
		}
		n, sum, low, high = n+1, sum+p.value, min(low, p.value), max(high, p.value)
	}
	if n == 0 {
		return 0, false
	}
	return map[string]float64{"Sum": sum, "Maximum": high, "Minimum": low, "Average": sum / float64(n), "SampleCount": float64(n)}[stat], true
}
