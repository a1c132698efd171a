// Package stream does the background work on the table of package dynamo:
//
//   - [Drain] reads the table's stream and delivers staged jobs;
//   - [Completer] reads the same stream and queues tickets for unfinished operations;
//   - [Both] is a drain and a completer in one function;
//   - [Sweep] runs on a schedule and finds what the readers of the stream missed.
//
// [Redrive] is for operators: it delivers parked jobs again.
//
// Package worker runs drain, completer and sweep in one Lambda function.
// docs/inside/performance.md#the-calls-of-the-worker lists what their calls cost.
//
// # Guarantees
//
// A job is delivered at least once, under the same id each time. The job stays in its record, and
// the record is kept, until the delivery is acknowledged. A write about a job requires that the
// record still belongs to the operation that staged the job. So the write never changes the record
// of a later operation under the same key. The write doesn't raise the record's version, so the
// attempt that holds the record isn't disturbed.
//
// Drain, completer and sweep may run late, twice or concurrently.
package stream
