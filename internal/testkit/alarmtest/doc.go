// Package alarmtest evaluates a template's CloudWatch alarms on metrics that tests
// have emitted: a test sees an alarm fire, stay, and recover, without CloudWatch.
//
//	alarms, err := alarmtest.Parse(template, map[string]string{"App": "rides"})
//	var data alarmtest.Data
//	err = data.EMF(log)                     // the lines of a real run
//	state := alarms["StuckAlarm"].At(data, now)
//
// The arithmetic follows CloudWatch's documentation, "Evaluating an alarm" and
// "Configuring how CloudWatch alarms treat missing data". Periods slide by the minute. If
// there are too few periods with data, the alarm's TreatMissingData decides how the
// missing periods count. The alarm fires if M of N periods breach. An alarm with an
// unknown property is an error.
package alarmtest
