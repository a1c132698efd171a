package store

import "time"

// Call describes a call of a [Store] to its medium, such as one PutItem.
type Call struct {
	Op         string        // the medium's name for the call, such as "PutItem"
	Begun      time.Time     // when the call began, by time.Now
	Duration   time.Duration // how long the call took, including Retries
	Retries    int           // how often the call was sent again; 0 if unknown
	ReadUnits  float64       // capacity units; 0 if unknown
	WriteUnits float64       // capacity units; 0 if unknown
	Fault      Fault         // kind of Err; "" if Err is nil, or is no fault (a false condition, for example)
	Err        error         // the error of the medium's client
}

// Fault is the kind of a failed call.
type Fault string

// The kinds of failed calls.
const (
	Throttled Fault = "throttled" // refused because of the load; the call may have been applied only if it was sent more than once
	Conflict  Fault = "conflict"  // refused because of another write in progress
	Unknown   Fault = "unknown"   // the service was not reached, didn't answer, or failed; a write may have been applied
	Denied    Fault = "denied"    // the role, the credentials or the encryption key don't allow the call
	Invalid   Fault = "invalid"   // the call is malformed, or the table is missing or has another layout
)

// Cost is the sum of several calls.
type Cost struct {
	Calls      int
	Retries    int           // how often calls were sent again
	ReadUnits  float64       // capacity units; 0 if unknown
	WriteUnits float64       // capacity units; 0 if unknown
	Faults     map[Fault]int // number of failed calls of each kind; nil if no call failed
}
