package store

import "time"

// Call describes a call of a [Store] to its medium, such as one PutItem.
type Call struct {
	Op         string        // the medium's name for the call, such as "PutItem"
	Begun      time.Time     // when the call began, by the real clock
	Duration   time.Duration // including the client's own retries
	Retries    int           // how often the client sent the call again; 0 if unknown
	ReadUnits  float64       // capacity units; 0 if unknown
	WriteUnits float64       // capacity units; 0 if unknown
	Fault      Fault         // kind of Err; "" if Err is nil or only says that a condition was false
	Err        error         // as returned by the client; may be set without a Fault
}

// Fault is the kind of a failed call.
type Fault string

// The kinds of failed calls.
const (
	Throttled Fault = "throttled" // refused because of the load; not applied, if the call was sent only once
	Conflict  Fault = "conflict"  // refused because of another write in progress
	Unknown   Fault = "unknown"   // service not reached, no answer, or an error of the service: a write may have been applied
	Denied    Fault = "denied"    // the role, the credentials or the encryption key don't allow the call
	Invalid   Fault = "invalid"   // the call is malformed, or the table is missing or has another layout
)

// Cost is the sum of several calls.
type Cost struct {
	Calls      int
	Retries    int           // calls that the client sent again
	ReadUnits  float64       // capacity units; 0 if the store doesn't ask for them
	WriteUnits float64       // capacity units; 0 if the store doesn't ask for them
	Faults     map[Fault]int // failed calls; nil without any
}
