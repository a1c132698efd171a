// Package alarmtest evaluates a template's CloudWatch alarms on metrics that tests
// have emitted: a test sees an alarm fire, stay, and recover, without CloudWatch.
//
//	alarms, err := alarmtest.Parse(template, map[string]string{"App": "rides"})
//	var data alarmtest.Data
//	err = data.EMF(log)                     // the lines of a real run
//	state := alarms["StuckAlarm"].At(data, now)
//
// The arithmetic is that of CloudWatch's documentation, "Evaluating an alarm" and
// "Configuring how CloudWatch alarms treat missing data": periods slide by the
// minute, missing periods are replaced by the alarm's rule if there are too few
// others, and M of N periods must breach. An alarm with an unknown property is an
// error.
package alarmtest
