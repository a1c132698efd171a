package idem

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// Job is work that a handler stages. A job is delivered only after the commit that
// stages it. [NewJob] makes a Job.
type Job = store.Job

// maxJobs limits the number of jobs that wait in one record. Each acknowledgement of a
// delivery writes the record, and costs more if the record is larger.
const maxJobs = 50

// maxKind limits the length of a kind: it is EventBridge's limit for detail types.
const maxKind = 128

// maxArgs is the largest size of Args, in bytes. SNS and Step Functions accept 256 KiB
// for Args and the job's id, kind and trace together. If a sink refused a job for its
// size, the job would stay parked for ever.
const maxArgs = 250 << 10

// argsSize returns the size of args in the larger of the two forms that sinks send. One
// form is args as they are, except that two characters that SQS refuses are escaped.
// The other form is compact JSON in an event, where the characters with a meaning in
// HTML are escaped.
func argsSize(args []byte) int {
	if len(args) <= maxArgs/6 { // even if every byte is escaped, these args have at most maxArgs bytes
		return len(args)
	}
	event, _ := json.Marshal(json.RawMessage(args)) // no error: checkJob has refused args that aren't JSON
	const escape = len(`\ufffe`) - len("\ufffe")
	return max(len(event), len(args)+escape*(bytes.Count(args, []byte("\ufffe"))+bytes.Count(args, []byte("\uffff"))))
}

// roundAt returns j with its time rounded up to whole milliseconds, since records store
// no smaller units. If the time is in the past, roundAt removes it, so that the job is
// delivered at once. If the record isn't kept until that time, roundAt returns an
// error.
func (c *core) roundAt(j Job) (Job, error) {
	now, retention := c.opt.Now(), c.opt.Retention
	switch {
	case !j.At.After(now):
		j.At = time.Time{}
	case j.At.Sub(now) > retention:
		return j, fmt.Errorf("%w: job %q is for %s, %s from now: its record is kept for %s (Options.Retention)",
			ErrWrite, j.Kind, j.At.UTC().Format(time.RFC3339), j.At.Sub(now).Round(time.Second), retention)
	default:
		at := j.At.UTC().Truncate(time.Millisecond)
		if at.Before(j.At) {
			at = at.Add(time.Millisecond)
		}
		j.At = at
	}
	return j, nil
}

// NewJob returns a job of this kind, with v as JSON in Args. If v can't be encoded as
// JSON, the job has no Args, and the phase that stages it fails ([ErrWrite]).
func NewJob(kind string, v any) Job {
	args, _ := json.Marshal(v) // empty if v has no JSON form: staging then refuses the job
	return Job{Kind: kind, Args: args}
}

// checkJob returns an error if j can't be staged.
func checkJob(j Job) error {
	switch {
	case j.Kind == "":
		return fmt.Errorf("%w: a job without a Kind", ErrWrite)
	case len(j.Kind) > maxKind:
		return fmt.Errorf("%w: a job's Kind has %d bytes: at most %d", ErrWrite, len(j.Kind), maxKind)
	case !json.Valid(j.Args) || !utf8.Valid(j.Args):
		return fmt.Errorf("%w: the Args of job %q are not JSON", ErrWrite, j.Kind)
	case !utf8.ValidString(j.Kind) || !utf8.ValidString(j.Group):
		return fmt.Errorf("%w: the Kind or the Group of a job is not UTF-8: %q, %q", ErrWrite, j.Kind, j.Group)
	case argsSize(j.Args) > maxArgs:
		return fmt.Errorf("%w: the Args of job %q have %d bytes: at most %d; keep the data elsewhere, and stage its name",
			ErrWrite, j.Kind, argsSize(j.Args), maxArgs)
	case j.Tries != 0 || j.Failed != "" || !j.Begun.IsZero():
		return fmt.Errorf("%w: job %q has Tries, Failed or Begun set", ErrWrite, j.Kind)
	}
	return nil
}

// run.stage adds jobs to the next commit.
func (r *run) stage(ctx context.Context, jobs []Job) error {
	return r.gate.between(func() error {
		traced, err := prepareJobs(ctx, r.watch, jobs)
		if err != nil {
			return err
		}
		if !r.progress.keep(traced) {
			return nil // an earlier attempt has committed the next phase with these jobs
		}
		return r.checkJobs(ctx, nil)
	})
}

// checkJobs returns an error if jobs can't be committed together with the jobs that already
// wait for the next commit.
func (r *run) checkJobs(ctx context.Context, jobs []Job) error {
	traced, err := prepareJobs(ctx, r.watch, jobs)
	if err != nil {
		return err
	}
	all, err := jobsOfCommit(ctx, r, traced)
	sizer, sizes := r.ask.core.store.(store.Sizer)
	if err != nil || !sizes {
		return err
	}
	rec := r.record()
	return sizer.Fits(rec, state.Advanced(rec, r.ask.core.opt.Now(), nil, all, nil))
}

// jobsOfCommit returns the given jobs and those that already wait for the next commit.
// The map's keys are the jobs' names in the record ([progress.jobsOfCommit]).
func jobsOfCommit(ctx context.Context, r *run, jobs []Job) (map[string]Job, error) {
	return r.progress.jobsOfCommit(ctx, jobs, r.ask.core.roundAt, r.writer.countJobs)
}

// prepareJobs returns the given jobs with the trace context of ctx. It returns an error
// if checkJob refuses one of the jobs.
func prepareJobs(ctx context.Context, w *watch, jobs []Job) ([]Job, error) {
	for _, j := range jobs {
		if err := checkJob(j); err != nil {
			return nil, err
		}
	}
	traced := slices.Clone(jobs)
	w.giveTrace(ctx, traced)
	return traced, nil
}

// refuseDeliveryKey returns an error if the operation may not make calls or stage jobs,
// because its key names only a delivery ([state.MayReach]).
func refuseDeliveryKey(deliveryKey bool, rec *store.Record, what string) error {
	if state.MayReach(deliveryKey, rec) {
		return nil
	}
	return fmt.Errorf("%w: %s, and would do so again, under a new derived key, once the message comes back from a dead-letter queue with another id; "+
		"have a key that names the work: lambda.Batch.WithKey or WithBodyKey, or the message attribute lambda.KeyAttribute; "+
		"or say that you accept it: lambda.Batch.CallsAgainAfterRedrive", ErrDeliveryKey, what)
}
