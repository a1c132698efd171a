package alarmtest

import (
	"fmt"
	"time"
)

// Course is the expected course of an alarm. Before the time From, the alarm doesn't fire. It fires
// from the time By until the time Mended. At the time End, its state is OK. If Mended is zero, the
// state between From and End isn't checked.
type Course struct {
	Begun       time.Time // start of the data
	From, By    time.Time
	Mended, End time.Time
}

// calm is how long, after the start of the data, an alarm may be in any state. At a first
// deployment there is no data yet, so an alarm on missing data fires.
const calm = 10 * time.Minute

// Wrong describes how the course of an alarm differs from c. It returns "" if the course is as
// expected.
func (c *Course) Wrong(a Alarm, d Data) string {
	all := a.Over(d, c.Begun, c.End)
	state := func(at time.Time) (s State) {
		for _, change := range all {
			if !change.At.After(at) {
				s = change.State
			}
		}
		return s
	}
	for at := c.Begun.Add(calm); at.Before(c.From); at = at.Add(time.Minute) {
		if state(at) == Firing {
			return "it fires without trouble"
		}
	}
	for at := c.By; at.Before(c.Mended); at = at.Add(time.Minute) {
		if s := state(at); s != Firing {
			return fmt.Sprintf("it is %s %v after the trouble began", s, at.Sub(c.From))
		}
	}
	if s := state(c.End); s != OK {
		return fmt.Sprintf("it is %s %v after the mending", s, c.End.Sub(c.Mended))
	}
	return ""
}
