package eventsource

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// every returns the plan (see Schedule.plan) of runs at this interval.
func every(interval time.Duration) func(time.Time) (time.Time, bool) {
	return func(after time.Time) (time.Time, bool) { return after.Add(interval), true }
}

var expressionForm = regexp.MustCompile(`^(rate|cron|at)\((.*)\)$`)

// parseExpression reads an expression of one of the forms rate(5 minutes),
// cron(0 9 ? * MON-FRI *) and at(2026-11-21T10:00:00). A rule can't have at(…).
func parseExpression(expression, timezone string, rule bool) (func(time.Time) (time.Time, bool), error) {
	form := expressionForm.FindStringSubmatch(expression)
	if form == nil {
		return nil, fmt.Errorf("expression %q is neither rate(…) nor cron(…) nor at(…)", expression)
	}
	zone, err := time.LoadLocation(timezone)
	if err != nil {
		return nil, err
	}
	var plan func(time.Time) (time.Time, bool)
	switch {
	case form[1] == "rate":
		plan, err = parseRate(form[2], rule)
	case form[1] == "cron":
		plan, err = parseCron(form[2], zone)
	case rule:
		err = errors.New("a rule has no at(…), only a schedule of EventBridge Scheduler (ScheduleV2) has")
	default:
		plan, err = parseAt(form[2], zone)
	}
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", expression, err)
	}
	return plan, nil
}

// parseRate reads a number and a unit. In a rule, 1 needs a singular unit, and any
// other number a plural unit. EventBridge Scheduler accepts both forms with any number.
func parseRate(s string, rule bool) (func(time.Time) (time.Time, bool), error) {
	units := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	value, unit, _ := strings.Cut(s, " ")
	n, err := strconv.ParseUint(value, 10, 32)
	one, plural := strings.CutSuffix(unit, "s")
	length := units[one]
	switch {
	case err != nil || n == 0 || length == 0:
		return nil, errors.New("a rate is a positive number and minutes, hours or days")
	case rule && plural == (n == 1):
		return nil, errors.New("in a rule, a rate of 1 needs a singular unit, and other rates a plural unit")
	}
	return every(time.Duration(n) * length), nil
}

// parseAt reads the time of a schedule that runs once.
func parseAt(s string, zone *time.Location) (func(time.Time) (time.Time, bool), error) {
	at, err := time.ParseInLocation("2006-01-02T15:04:05", s, zone)
	if err != nil {
		return nil, errors.New("at(…) has a time as 2026-11-21T10:00:00, without a zone")
	}
	return func(after time.Time) (time.Time, bool) { return at, at.After(after) }, nil
}

// parseCron reads AWS's six fields: minutes, hours, day of month, month, day of
// week, year.
func parseCron(s string, zone *time.Location) (func(time.Time) (time.Time, bool), error) {
	fields := strings.Fields(s)
	if len(fields) != 6 {
		return nil, fmt.Errorf("%d fields, want 6", len(fields))
	}
	if (fields[2] == "?") == (fields[4] == "?") {
		return nil, errors.New("exactly one of day of month and day of week must be ?")
	}
	days, err := weekdays(fields[4])
	if err != nil {
		return nil, err
	}
	fields[4] = days
	gronxExpression := "0 " + strings.Join(fields, " ") // seconds first
	if !gronx.IsValid(gronxExpression) {
		return nil, errors.New("a field is wrong, or has a form that samekey local doesn't know")
	}
	return func(after time.Time) (time.Time, bool) {
		// if there is no next run, NextTickAfter returns an error or the given time
		next, err := gronx.NextTickAfter(gronxExpression, after.In(zone), false)
		return next, err == nil && next.After(after)
	}, nil
}

// weekdays changes AWS's numbers of weekdays (Sunday is 1) to gronx's (Sunday is 0). It
// keeps names, and numbers after / (a step) or # (a week of the month).
func weekdays(field string) (string, error) {
	var out strings.Builder
	for i, c := range field {
		before := byte(',')
		if i > 0 {
			before = field[i-1]
		}
		digit := c >= '0' && c <= '9'
		switch {
		case !digit || before == '#' || before == '/':
			out.WriteRune(c)
		case c < '1' || c > '7' || before >= '0' && before <= '9':
			return "", errors.New("days of the week are 1 to 7")
		default:
			out.WriteRune(c - 1)
		}
	}
	return out.String(), nil
}
