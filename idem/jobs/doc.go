// Package jobs is for the functions that work behind an application: a [Sink] takes
// the jobs that phases have staged, a [TicketQueue] keeps the tickets of abandoned
// operations until they are due.
//
// Package lambda/sink has sinks for SQS, SNS, EventBridge and Lambda, package
// lambda/completer has the queue. An application that stages jobs doesn't need this
// package.
package jobs
