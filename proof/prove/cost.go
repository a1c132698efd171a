package main

import (
	"errors"
	"fmt"
	"sync"
)

// Cost is how much of each thing that costs money is used, at most.
type Cost struct {
	Hours    float64 // of the stack
	Bookings int     // requests to the API, each with all that it sets off
	Writes   int     // units of DynamoDB that the program itself uses
	Reads    int
	Calls    int // of the other services: S3, SQS, Lambda
}

// The prices of us-east-1 in dollars, read from the price lists in November 2026, doubled: no Region
// with all services is dearer than that.
const (
	regions = 2

	write      = regions * 0.625e-6
	read       = regions * 0.125e-6
	invocation = regions * 0.20e-6
	second     = regions * 0.25 * 16.6667e-6 // of a function with 256 MB
	message    = regions * 0.40e-6           // SQS
	served     = regions * 1.00e-6           // a request to an HTTP API
	logged     = regions * 0.50e-6           // a KB of logs
	traced     = regions * 5.00e-6           // a trace
	object     = regions * 5.00e-6           // a PUT or LIST of S3, the dearest of the other calls
	alarm      = regions * 0.10 / 720        // for an hour
	metric     = regions * 0.30 / 720        // for an hour
)

// What a stack has for an hour, beside what its requests set off: its alarms and its own
// metrics, the polls of two queues by five readers each, every 20 seconds, and the schedules
// and sweeps.
const anHour = 40*alarm + 60*metric + 2*5*180*message + 60*(invocation+2*second+100*read)

// What a booking sets off at most, with its client's retries apart: functions of Rides,
// authorizer, provider, worker and receipts, some of them up to their time limit.
const aBooking = served + 12*invocation + 20*second + 60*write + 20*read + 12*message + 40*logged + 6*traced

// Dollars is the price.
func (c Cost) Dollars() float64 {
	return c.Hours*anHour + float64(c.Bookings)*aBooking + float64(c.Writes)*write + float64(c.Reads)*read + float64(c.Calls)*object
}

func (c Cost) plus(o Cost) Cost {
	return Cost{c.Hours + o.Hours, c.Bookings + o.Bookings, c.Writes + o.Writes, c.Reads + o.Reads, c.Calls + o.Calls}
}

// over says of which thing c has more than most; "" if of none.
func (c Cost) over(most Cost) string {
	for _, v := range []struct {
		what     string
		got, max int
	}{{"requests to the API", c.Bookings, most.Bookings}, {"write units", c.Writes, most.Writes}, {"read units", c.Reads, most.Reads}, {"other calls", c.Calls, most.Calls}} {
		if v.got > v.max {
			return fmt.Sprintf("%d %s, of %d that were planned", v.got, v.what, v.max)
		}
	}
	return ""
}

// errOverPlan ends an examination that would use more than was planned for it.
var errOverPlan = errors.New("it would cost more than was planned")

// meter counts what an examination uses, and refuses what goes beyond its plan.
type meter struct {
	mu         sync.Mutex
	used, most Cost
	all        Cost // of all examinations
}

// begin starts to count for an examination with that plan.
func (m *meter) begin(most Cost) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used, m.most = Cost{}, most
}

// add counts c, before it is used. It fails if that is more than was planned.
func (m *meter) add(c Cost) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.used.plus(c)
	if over := next.over(m.most); over != "" {
		return fmt.Errorf("%w: %s", errOverPlan, over)
	}
	m.used, m.all = next, m.all.plus(c)
	return nil
}

func (m *meter) total() Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all
}
