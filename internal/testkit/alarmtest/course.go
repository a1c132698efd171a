package alarmtest

import (
	"fmt"
	"time"
)

// Course is the expected course of an alarm. The alarm doesn't fire before From. It fires
// from By until Mended, and is OK at End. If Mended is zero, the alarm may end by itself.
type Course struct {
	Begun       time.Time // start of the data
	From, By    time.Time
	Mended, End time.Time
}

// calm is how long after the start of the data an alarm may have any state: an alarm that fires on
// missing data fires at a first deployment.
const calm = 10 * time.Minute

// Wrong returns what is wrong with an alarm's course; "" for nothing.
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
