// Package sink has the sinks of a drain: [Queue], [Topic], [Bus], [Function] and [StateMachine].
// Each is a jobs.Sink over an SDK client. The worker's setting SAMEKEY_SINKS says which sinks the
// worker uses (package readyworker).
//
// A job arrives at least once, always under the same id. Each sink's comment describes the message
// or event that carries the job. A consumer that is wrapped with package lambda does the work of
// each id once.
//
// # Errors
//
// A sink decides whether an error is the fault of the job or of the service. The sink decides by
// the error code if the service documents the code, otherwise by the HTTP status.
//
//   - A job that is too large, or has content that the service refuses, is at fault. The error
//     counts against the job. After several errors that count, the job is parked.
//   - If the service doesn't answer, answers 5xx, throttles or gives no access (401, 403, 404), the
//     error matches jobs.ErrSinkDown and doesn't count against the job. The rest of the batch isn't
//     tried (jobs.ErrHeldBack), so that an outage costs one call.
//   - Any other refusal (4xx) can be caused by the job or by the sink's setup. If the sink accepted
//     another job of the batch, each refusal counts against its job. If the sink accepted none,
//     only the first refusal can count, and after ten refusals the rest of the batch isn't tried.
//
// If a refusal of unknown cause counts against a job, the sink remembers the job as the suspect. If
// the sink accepts no job of a batch, a refusal of unknown cause can count against another job in
// two cases only: the sink accepted a job within the last minute, or no refusal has counted against
// the suspect for three minutes. So bad jobs are parked one after another. But if a sink refuses
// everything, not all jobs are parked, even if each job arrives alone.
//
// # Sizes
//
// A call stays within the limits that its service documents: ten entries, and for all entries
// together 1 MiB (SQS), 1 MB (EventBridge) or 256 KiB (SNS, the default limit of a topic). A job
// over the limit is sent alone, and the service decides whether to accept it. If a service refuses
// a call, for example because a queue's limit is set lower, each job of the call is sent again
// alone. An asynchronous invocation of a function takes at most 1 MB, an execution of Step
// Functions at most 256 KiB.
package sink
