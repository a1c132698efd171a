package idem

import (
	"encoding/json"
	"fmt"
	"github.com/samekey/samekey/idem/store"
	"strconv"
	"unicode/utf8"
)

// Write is one of the user's own writes, or a check of something that was read,
// which commits together with the record. It is made by a store's package
// (dynamo.Put and its like).
type Write = store.Write

// Job is a staged job: work that is handed on after the commit that staged it.
// [NewJob] makes one.
type Job = store.Job

// checkWrites says why writes can't be committed, as far as they know themselves.
func checkWrites(writes []Write) error {
	for _, w := range writes {
		if w == nil {
			return fmt.Errorf("%w: a write is nil", ErrWrite)
		}
		if err := w.Err(); err != nil {
			return fmt.Errorf("%w: %w", ErrWrite, err)
		}
	}
	if len(writes) == 0 {
		return nil
	}
	if c, ok := writes[0].(store.CommitChecker); ok {
		return c.CheckCommit(writes)
	}
	return nil
}

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

// numbered gives jobs their names in the record: the position of their phase
// and their own in it, so the same run of a handler gives the same names.
func numbered(phase, from int, jobs []Job) map[string]Job {
	m := make(map[string]Job, len(jobs))
	for i, j := range jobs {
		m[strconv.Itoa(phase)+"."+strconv.Itoa(from+i)] = j
	}
	return m
}
