// Package alarmtest evaluates a template's CloudWatch alarms on metrics that tests have emitted. So
// a test needs no CloudWatch to see whether an alarm fires, keeps firing, and ends.
//
//	alarms, err := alarmtest.Parse(template, map[string]string{"App": "rides"})
//	var data alarmtest.Data
//	err = data.EMF(log)                     // the lines of a real run
//	state := alarms["StuckAlarm"].At(data, now)
//
// The arithmetic follows CloudWatch's documentation, "Evaluating an alarm" and "Configuring how
// CloudWatch alarms treat missing data". The last period ends at the current minute, so the periods
// slide with each minute. The alarm fires if at least M of N periods breach the threshold. M is
// DatapointsToAlarm, and N is EvaluationPeriods. If there are too few periods with data, the
// alarm's TreatMissingData decides how the missing periods count. An alarm with an unknown property
// is an error.
package alarmtest
