// Package completer completes operations that their clients have abandoned.
//
// A ticket names such an operation. The tickets wait in an SQS [Queue] until they are
// due. A [Handler] takes them from the queue and hands each to a [Resumer]: to the
// function that serves the operation ([Invoke]), or to code in the same process
// ([InProcess]).
//
// Package stream makes the tickets, and package worker joins both to one function.
//
// # Guarantees
//
// A ticket names an operation, and waits until the operation has ended. A take-over is a
// conditional write: it succeeds only if the record is still as it was read. So lost, late,
// repeated or reordered tickets do no harm. The sweep finds operations that have no ticket.
//
// # Several functions on one table
//
// A record names the function and the handler that claimed it. Its ticket goes to that
// function, if it is one of the completer's [Functions]. A function takes over its own
// operations only. A ticket whose handler isn't found changes nothing, and ends. Its
// operation is listed, and an operator must find out why ([TicketNotMine]). See docs/operate/background.md for
// aliases, renamed functions and tenants.
package completer
