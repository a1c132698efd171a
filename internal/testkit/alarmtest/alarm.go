package alarmtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Alarm is an alarm of a template.
type Alarm struct {
	Name        string // logical id in the template
	Description string

	// Queries has one metric, or the metrics and expressions of metric math. Exactly
	// one query has Return set. The alarm compares the value of that query with
	// Threshold.
	Queries []Query

	Periods    int // EvaluationPeriods: N in "M of N"
	Datapoints int // DatapointsToAlarm: M in "M of N"; equal to N if the template doesn't set it
	Threshold  float64
	Comparison string
	Missing    string // TreatMissingData: breaching, notBreaching, ignore or missing

	// Actions is the number of receivers that are told when the alarm fires. OKActions is the
	// number of receivers that are told when the alarm ends.
	Actions, OKActions int
}

// Query is a metric with its statistic, or an expression over other queries.
type Query struct {
	ID         string
	Expression string
	Metric     Metric
	Stat       string
	Period     time.Duration
	Return     bool
}

// Metric names a series of data.
type Metric struct {
	Namespace, Name string
	Dimensions      map[string]string
}

// String returns the namespace, the name and the dimensions, which together identify the series.
func (m Metric) String() string {
	name := append(make([]string, 0, 2+len(m.Dimensions)), m.Namespace, m.Name)
	for _, k := range slices.Sorted(maps.Keys(m.Dimensions)) {
		name = append(name, k+":"+m.Dimensions[k])
	}
	return strings.Join(name, " ")
}

// properties are the known properties of AWS::CloudWatch::Alarm. Any other property is an
// error.
type properties struct {
	AlarmDescription   string      `yaml:"AlarmDescription"`
	Namespace          string      `yaml:"Namespace"`
	MetricName         string      `yaml:"MetricName"`
	Dimensions         []dimension `yaml:"Dimensions"`
	Statistic          string      `yaml:"Statistic"`
	Period             int         `yaml:"Period"`
	EvaluationPeriods  int         `yaml:"EvaluationPeriods"`
	DatapointsToAlarm  int         `yaml:"DatapointsToAlarm"`
	Threshold          *float64    `yaml:"Threshold"`
	ComparisonOperator string      `yaml:"ComparisonOperator"`
	TreatMissingData   string      `yaml:"TreatMissingData"`
	AlarmActions       []string    `yaml:"AlarmActions"`
	OKActions          []string    `yaml:"OKActions"`
	Metrics            []struct {
		ID         string `yaml:"Id"`
		Expression string `yaml:"Expression"`
		Label      string `yaml:"Label"`
		ReturnData *bool  `yaml:"ReturnData"`
		Period     int    `yaml:"Period"`
		MetricStat struct {
			Metric struct {
				Namespace  string      `yaml:"Namespace"`
				MetricName string      `yaml:"MetricName"`
				Dimensions []dimension `yaml:"Dimensions"`
			} `yaml:"Metric"`
			Period int    `yaml:"Period"`
			Stat   string `yaml:"Stat"`
		} `yaml:"MetricStat"`
	} `yaml:"Metrics"`
}

type dimension struct {
	Name  string `yaml:"Name"`
	Value string `yaml:"Value"`
}

func dimensions(list []dimension) map[string]string {
	out := make(map[string]string, len(list))
	for _, d := range list {
		out[d.Name] = d.Value
	}
	return out
}

// Parse returns a template's alarms by logical id. The values in params replace the defaults of the
// template's parameters. A reference to a resource becomes the resource's logical id. A condition
// is true unless params has "false" under the condition's name.
func Parse(template string, params map[string]string) (map[string]Alarm, error) {
	resources, err := resolve(template, params)
	if err != nil {
		return nil, err
	}
	alarms := make(map[string]Alarm)
	for name, node := range resources {
		var r struct {
			Type       string    `yaml:"Type"`
			Properties yaml.Node `yaml:"Properties"`
		}
		if err := node.Decode(&r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		alarm, err := parse(name, &r.Properties)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		alarms[name] = alarm
	}
	return alarms, nil
}

func parse(name string, node *yaml.Node) (Alarm, error) {
	var p properties
	if err := strict(node, &p); err != nil {
		return Alarm{}, err
	}
	a := Alarm{
		Name: name, Description: p.AlarmDescription, Periods: p.EvaluationPeriods, Datapoints: p.DatapointsToAlarm,
		Comparison: p.ComparisonOperator, Missing: p.TreatMissingData, Actions: len(p.AlarmActions), OKActions: len(p.OKActions),
	}
	if a.Datapoints == 0 {
		a.Datapoints = a.Periods
	}
	if a.Missing == "" {
		a.Missing = "missing"
	}
	if p.Threshold == nil {
		return Alarm{}, errors.New("there is no Threshold")
	}
	a.Threshold = *p.Threshold
	if p.MetricName != "" {
		a.Queries = []Query{{
			ID: "m", Stat: p.Statistic, Period: seconds(p.Period), Return: true,
			Metric: Metric{p.Namespace, p.MetricName, dimensions(p.Dimensions)},
		}}
	}
	for _, m := range p.Metrics {
		q := Query{ID: m.ID, Expression: m.Expression, Return: m.ReturnData == nil || *m.ReturnData, Period: seconds(m.Period)}
		if m.Expression == "" {
			s := m.MetricStat
			q.Stat, q.Period = s.Stat, seconds(s.Period)
			q.Metric = Metric{s.Metric.Namespace, s.Metric.MetricName, dimensions(s.Metric.Dimensions)}
		}
		a.Queries = append(a.Queries, q)
	}
	return a, a.check()
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// Alarm.check refuses alarms that CloudWatch would refuse, and alarms that this package
// can't evaluate.
func (a Alarm) check() error {
	returned := 0
	for _, q := range a.Queries {
		if q.Return {
			returned++
		}
		switch {
		case q.Expression != "":
			if _, err := compile(q.Expression); err != nil {
				return err
			}
		case q.Period < time.Minute || q.Period%time.Minute != 0:
			return fmt.Errorf("the period of %s is %v", q.Metric.Name, q.Period)
		case !slices.Contains([]string{"Sum", "Maximum", "Minimum", "Average", "SampleCount"}, q.Stat):
			return fmt.Errorf("the statistic of %s is %q", q.Metric.Name, q.Stat)
		}
	}
	_, known := comparisons[a.Comparison]
	switch {
	case returned != 1:
		return fmt.Errorf("%d queries are returned", returned)
	case !known:
		return fmt.Errorf("the comparison is %q", a.Comparison)
	case !slices.Contains([]string{"breaching", "notBreaching", "ignore", "missing"}, a.Missing):
		return fmt.Errorf("TreatMissingData is %q", a.Missing)
	case a.Periods < 1 || a.Datapoints < 1 || a.Datapoints > a.Periods:
		return fmt.Errorf("%d of %d periods", a.Datapoints, a.Periods)
	case a.period()*time.Duration(a.Periods) > 7*24*time.Hour:
		return fmt.Errorf("%d periods of %v are over a week", a.Periods, a.period())
	}
	return nil
}

// Condition describes when an alarm on one metric fires, in the form of package
// metrictable: "Sum > 0 in 2 of 3 periods of 5m, silence notBreaching".
func (a Alarm) Condition() string {
	of := strings.TrimSuffix(strings.TrimSuffix(a.period().String(), "0s"), "0m")
	return fmt.Sprintf("%s %s %v in %d of %d periods of %s, silence %s",
		a.Queries[0].Stat, signs[a.Comparison], a.Threshold, a.Datapoints, a.Periods, of, a.Missing)
}

var signs = map[string]string{
	"GreaterThanThreshold": ">", "GreaterThanOrEqualToThreshold": ">=", "LessThanThreshold": "<", "LessThanOrEqualToThreshold": "<=",
}

// Alarm.period returns the longest period of the alarm's queries.
func (a Alarm) period() time.Duration {
	var longest time.Duration
	for _, q := range a.Queries {
		longest = max(longest, q.Period)
	}
	return longest
}
