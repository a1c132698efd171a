package idem

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
)

// Job is a staged job: work that is handed on after the commit that staged it.
// [NewJob] makes one.
type Job = store.Job

// maxJobs is how many jobs may wait in one record: each acknowledgement pays
// for the record's size.
const maxJobs = 50

// NewJob returns a job whose Args are v as JSON. If v has no JSON form, staging
// the job fails its phase ([ErrWrite]).
func NewJob(kind string, v any) Job {
	args, err := json.Marshal(v)
	if err != nil {
		args = nil // not JSON: refused where it is staged, which can say so
	}
	return Job{Kind: kind, Args: args}
}

// checkJob says what is wrong with a job that is being staged.
func checkJob(j Job) error {
	switch {
	case j.Kind == "":
		return fmt.Errorf("%w: a job without a Kind", ErrWrite)
	case !json.Valid(j.Args) || !utf8.Valid(j.Args):
		return fmt.Errorf("%w: the Args of job %q are not JSON", ErrWrite, j.Kind)
	case j.Tries != 0 || j.Failed != "":
		return fmt.Errorf("%w: job %q has Tries or Failed set", ErrWrite, j.Kind)
	}
	return nil
}
