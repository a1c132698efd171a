// Package jobs is for the functions that work behind an application: a [Sink] takes
// the jobs that phases have staged, a [TicketQueue] keeps the tickets of abandoned
// operations until they are due.
//
// The worker has sinks for SQS, SNS, EventBridge, Lambda and Step Functions
// (docs/start/jobs.md#deliver-it). An application that stages jobs needs this package for a sink of
// its own only.
package jobs
