// Package jobs has the types for an application's background work. A [Sink] delivers the
// jobs that phases have staged. A [Ticket] names an abandoned operation for a completer.
//
// The worker has sinks for SQS, SNS, EventBridge, Lambda and Step Functions
// (docs/start/jobs.md#deliver-it). An application needs this package only to implement a
// sink of its own, to complete operations by itself (idem.Engine.Resume), or to check for
// the errors of completers and operators ([ErrMoved], [ErrNotMine]). Staging jobs doesn't
// need this package.
package jobs
