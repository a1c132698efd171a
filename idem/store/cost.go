package store

import "time"

// Call describes a call of a [Store] to its medium, such as one PutItem.
type Call struct {
	Op         string        // the medium's name for the call, such as "PutItem"
	Begun      time.Time     // when the call began, by the real clock
	Duration   time.Duration // how long the call took, with the client's own retries
	Retries    int           // how often the client sent the call again; 0 if unknown
	ReadUnits  float64       // capacity units; 0 if unknown
	WriteUnits float64       // capacity units; 0 if unknown
	Fault      Fault         // kind of Err; "" if Err is nil or isn't a fault, such as a false condition
	Err        error         // the client's error; may be set although Fault is ""
}

// Fault is the kind of a failed call.
type Fault string

// The kinds of failed calls.
const (
	Throttled Fault = "throttled" // refused because of the load; if the client sent the call only once, the call was not applied
	Conflict  Fault = "conflict"  // refused because of another write in progress
	Unknown   Fault = "unknown"   // the service was not reached, didn't answer, or failed; a write may have been applied
	Denied    Fault = "denied"    // the role, the credentials or the encryption key don't allow the call
	Invalid   Fault = "invalid"   // the call is malformed, or the table is missing or has another layout
)

// Cost is the sum of several calls.
type Cost struct {
	Calls      int
	Retries    int           // how often the client sent calls again
	ReadUnits  float64       // capacity units; 0 if the store doesn't ask for them
	WriteUnits float64       // capacity units; 0 if the store doesn't ask for them
	Faults     map[Fault]int // number of failed calls of each kind; nil if no call failed
}
