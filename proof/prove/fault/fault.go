// Package fault names the faults that the functions of prove's throw-away stack can be
// told to meet.
package fault

import (
	"fmt"
	"strconv"
	"strings"
)

// Header has the fault of a request to the API. Only the throw-away program reads it.
const Header = "X-Samekey-Prove"

// Items of the provider's table: faults that wait for a function, those that happened, and the calls
// that AWS has denied to a role.
const (
	Waiting  = "waiting#"
	Happened = "happened#"
	Denied   = "denied#"
	Received = "received#" // with a record's key: how often the message with its ticket was received
	Lost     = "lost#"     // while it is there, the worker's program gets no event of the stream
)

// Unneeded begins the key of an item in the table of records that the worker has no need of: the stream's
// filters keep it away.
const Unneeded = "samekey-prove#"

// Poison begins the key of an item in the table of records at which the worker dies.
const Poison = "samekey-poison#"

// Kind is a kind of fault.
type Kind string

// The kinds.
const (
	Before   Kind = "before"   // the process is killed before the call is made
	After    Kind = "after"    // it is killed when the call was made, before it hears of it
	Lose     Kind = "lose"     // the call's answer is lost
	Hang     Kind = "hang"     // the call isn't made until the function's time limit
	Memory   Kind = "memory"   // the process takes more memory than it has, before the call
	Answered Kind = "answered" // it is killed when Lambda has its answer, before the next event; the worker by a ticket's
	Refuse   Kind = "refuse"   // the sink refuses the job, by the fault of the job, as often as Call says
	Unhidden Kind = "unhidden" // SQS refuses to hide the message of a ticket
	Outside  Kind = "outside"  // the process makes a call that its role doesn't allow, before the call
	Came     Kind = "came"     // no fault: an item whose key begins with Unneeded came to the worker
	Poisoned Kind = "poisoned" // an item whose key begins with Poison came, in a batch of as many records as Call says
	Partial  Kind = "partial"  // no fault: the worker has answered that some records of a batch come again
)

// Fault is a fault at a call of an invocation. The zero Fault is none.
type Fault struct {
	Kind Kind
	Call int    // 1 is the first
	Cell string // names the examination
}

func (f Fault) String() string { return fmt.Sprintf("%s %d %s", f.Kind, f.Call, f.Cell) }

// Parse reads a fault. What is none is the zero Fault.
func Parse(s string) Fault {
	parts := strings.Fields(s)
	if len(parts) != 3 {
		return Fault{}
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return Fault{}
	}
	return Fault{Kind(parts[0]), n, parts[2]}
}
