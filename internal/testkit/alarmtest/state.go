package alarmtest

import (
	"time"
)

// State is an alarm's state.
type State string

// The states of an alarm.
const (
	OK           State = "OK"
	Firing       State = "ALARM"
	Insufficient State = "INSUFFICIENT_DATA"
)

var comparisons = map[string]func(value, threshold float64) bool{
	"GreaterThanThreshold":          func(v, t float64) bool { return v > t },
	"GreaterThanOrEqualToThreshold": func(v, t float64) bool { return v >= t },
	"LessThanThreshold":             func(v, t float64) bool { return v < t },
	"LessThanOrEqualToThreshold":    func(v, t float64) bool { return v <= t },
}

// beyond is the number of periods that CloudWatch examines in addition to EvaluationPeriods, to
// find periods with data.
const beyond = 2

// At returns the alarm's state at the time now. At assumes that the alarm was in the
// state INSUFFICIENT_DATA before. [Alarm.Over] uses the state of a minute earlier
// instead.
func (a Alarm) At(d Data, now time.Time) State { return a.next(d, now, Insufficient) }

// Change is a change of an alarm to another state.
type Change struct {
	At    time.Time
	State State
}

// Over evaluates the alarm every minute from one time to another, and returns the alarm's changes
// of state. The first change is always to INSUFFICIENT_DATA.
func (a Alarm) Over(d Data, from, to time.Time) []Change {
	changes := []Change{{from, Insufficient}}
	for now := from.Truncate(time.Minute); !now.After(to); now = now.Add(time.Minute) {
		last := changes[len(changes)-1].State
		if s := a.next(d, now, last); s != last {
			changes = append(changes, Change{now, s})
		}
	}
	return changes
}

// Alarm.next returns the alarm's state at the time now. It examines a.Periods+beyond periods,
// and uses the latest a.Periods periods that have data. If fewer periods have data,
// TreatMissingData decides how the missing periods count.
func (a Alarm) next(d Data, now time.Time, last State) State {
	now = now.Truncate(time.Minute)
	real, breaching := 0, 0
	for i := 0; i < a.Periods+beyond && real < a.Periods; i++ {
		to := now.Add(-time.Duration(i) * a.period())
		if value, ok := a.value(d, to.Add(-a.period()), to); ok {
			real++
			if comparisons[a.Comparison](value, a.Threshold) {
				breaching++
			}
		}
	}
	if a.Missing == "breaching" {
		breaching += a.Periods - real
	}
	few := real < a.Datapoints && breaching == real // fewer than a.Datapoints periods have data, and the value breaches in all of these
	switch {
	case breaching >= a.Datapoints:
		return Firing
	case few && a.Missing == "ignore":
		return last
	case few && a.Missing == "missing" && real == 0:
		return Insufficient
	case few && a.Missing == "missing":
		return Firing
	}
	return OK
}

// Alarm.value computes one period's value, which the alarm compares with its threshold.
// It returns false if there is no value.
func (a Alarm) value(d Data, from, to time.Time) (float64, bool) {
	values := make(map[string]float64)
	for _, q := range a.Queries {
		if q.Expression != "" {
			continue
		}
		if v, ok := d.stat(q.Metric, q.Stat, from, to); ok {
			values[q.ID] = v
		}
	}
	for _, q := range a.Queries {
		if !q.Return {
			continue
		}
		if q.Expression == "" {
			v, ok := values[q.ID]
			return v, ok
		}
		return evaluate(q.Expression, values)
	}
	return 0, false
}

// Metrics returns the metrics that the alarm uses.
func (a Alarm) Metrics() (all []Metric) {
	for _, q := range a.Queries {
		if q.Expression == "" {
			all = append(all, q.Metric)
		}
	}
	return all
}

// String describes the alarm's rule for a test's message.
func (a Alarm) String() string {
	return a.Name + ": " + a.Condition()
}
