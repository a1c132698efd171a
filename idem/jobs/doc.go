// Package jobs is for the functions that work behind an application: a [Sink] takes
// the jobs that phases have staged, and a [Ticket] names an abandoned operation.
//
// The worker has sinks for SQS, SNS, EventBridge, Lambda and Step Functions
// (docs/start/jobs.md#deliver-it). An application that stages jobs needs this package
// only for a sink of its own, or to complete operations in the worker (lambda/worker).
package jobs
