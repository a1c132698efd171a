package idem

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
)

// Job is a staged job: work that is delivered after the commit that staged the
// job. [NewJob] makes a Job.
type Job = store.Job

// maxJobs is how many jobs may wait in one record: the cost of each
// acknowledgement grows with the record's size.
const maxJobs = 50

// maxKind is how long a kind may be: EventBridge takes no longer detail type.
const maxKind = 128

// due returns j with its time as the record has it. A time that is past is none: the
// job is like any other.
func (c *core) due(j Job) (Job, error) {
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

// NewJob returns a job with v as JSON in its Args. If v has no JSON form, staging
// the job fails its phase ([ErrWrite]).
func NewJob(kind string, v any) Job {
	args, _ := json.Marshal(v) // none, if v has no JSON form: staging refuses the job with an error
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
	case j.Tries != 0 || j.Failed != "" || !j.Begun.IsZero():
		return fmt.Errorf("%w: job %q has Tries, Failed or Begun set", ErrWrite, j.Kind)
	}
	return nil
}
