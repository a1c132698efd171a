// Package sink has the sinks of a drain: [Queue], [Topic], [Bus], [Function] and
// [StateMachine]. Each implements jobs.Sink with an SDK client. The worker's setting
// SAMEKEY_SINKS says which sinks the worker uses (package readyworker).
//
// A job arrives at least once, always under the same id. Each sink's comment describes
// the message or event that carries the job. A consumer that is wrapped with package
// lambda does the work of each id once.
//
// # Errors
//
// A sink decides whether an error is the fault of the job or of the service. The sink
// decides by the error code if the service documents the code, otherwise by the HTTP
// status.
//
//   - The job is at fault if it is too large, or if the service refuses its content.
//     The error counts against the job. After several errors that count, the job is
//     parked.
//   - The service is at fault if it doesn't answer, answers 5xx, throttles, refuses
//     access (401, 403), or answers 404. The error matches jobs.ErrSinkDown and
//     doesn't count against the job. The rest of the batch isn't tried
//     (jobs.ErrHeldBack), so that an outage costs one call.
//   - After any other refusal (4xx), the cause is unknown: the job, or the sink's
//     setup. If the sink accepted another job of the batch, each such refusal counts
//     against its job. If the sink accepted no job, only the first refusal can count,
//     and after ten refusals the rest of the batch isn't tried.
//
// If the sink accepts no job of a batch and a refusal of unknown cause counts, the sink
// remembers the refused job as the suspect. If the sink accepts no job of a later
// batch, a refusal of unknown cause can count against another job in two cases only:
// the sink accepted a job within the last minute, or no refusal has counted against the
// suspect for three minutes. So if a sink refuses everything, jobs are parked only one
// after another, even if each job arrives alone.
//
// # Sizes
//
// A call stays within the limits that its service documents: ten entries, and for all
// entries together 1 MiB (SQS), 1 MB (EventBridge) or 256 KiB (SNS, the default limit
// of a topic). A job over the limit is sent alone, and the service decides whether to
// accept it. If a service refuses a whole call, for example because a queue has a lower
// limit, each job of the call is sent again alone. An asynchronous invocation of a
// function takes at most 1 MB. An execution of Step Functions takes at most 256 KiB.
package sink
