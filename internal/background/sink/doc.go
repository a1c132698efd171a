// Package sink has the sinks of a drain: [Queue], [Topic], [Bus], [Function] and
// [StateMachine]. Each is a jobs.Sink over an SDK client. SAMEKEY_SINKS of the worker chooses
// them (package readyworker).
//
// A job arrives at least once, always under the same id. Each sink documents the
// job's form. Package lambda has the consumers that carry out each id once.
//
// # Errors
//
// A sink decides whether an error is the job's fault or the service's: by the error codes
// that the service documents, otherwise by the class of the error.
//
//   - A job that is too large, or has content that the service refuses, is at fault. The error
//     counts against the job. After several errors that count, the job is parked.
//   - No answer, a status of 5xx, throttling, and a lack of access (401, 403, 404) match
//     jobs.ErrSinkDown and don't count. The rest of the batch isn't tried
//     (jobs.ErrHeldBack), so that an outage costs one call.
//   - Another refusal (4xx) can be the fault of the job, or of how the sink is set up. It
//     counts if the sink took another job of the batch. If the sink took none, it
//     counts for the first refused job only, and after ten refusals the rest of the batch
//     counts for the first refused job only, and after ten refusals the rest of the batch isn't
//     tried. A sink remembers that job. Refusals of other jobs don't count until the sink has taken
//     a job, or three minutes have passed without another refusal of the remembered job. So bad
//     jobs are parked one after another, and a sink that refuses everything doesn't park
//     everything, even if each job comes alone.
//
// # Sizes
//
// Calls stay within the limits that the services document: ten entries each, and 1 MiB for
// SQS, 1 MB for EventBridge, 256 KiB for SNS (the limit of a topic that isn't set
// higher). A job over the limit is sent alone, and the service decides. If a service
// refuses a call, since a queue is set lower, each job of the call is sent alone. An
// asynchronous invocation takes 1 MB, an execution of Step Functions 256 KiB.
package sink
