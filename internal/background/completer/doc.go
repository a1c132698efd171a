// Package completer completes operations that their clients have abandoned.
//
// A ticket names such an operation. The tickets wait in an SQS [Queue] until they are
// due. A [Handler] takes each ticket from the queue and hands it to a [Resumer]. The
// Resumer is the function that serves the operation ([Invoke]), or code in the same
// process ([InProcess]).
//
// Package stream makes the tickets. Package worker runs the packages stream and
// completer in one function.
//
// # Guarantees
//
// A ticket waits until its operation has ended. An attempt takes over the operation by
// a conditional write, which succeeds only if the record is unchanged since it was
// read. So late, repeated or reordered tickets do no harm. Lost tickets do no harm
// either, since the sweep finds operations that have no ticket.
//
// # Several functions on one table
//
// A record names the function and the handler that claimed it. If the completer's
// [Functions] contain the function, the ticket goes to that function. A function takes
// over only its own operations. If a ticket's handler isn't found, the ticket ends
// without a change to the operation. The operation is then listed for an operator, who
// must find out why the handler is missing ([TicketNotMine]). See
// docs/operate/background.md for aliases, renamed functions and tenants.
package completer
