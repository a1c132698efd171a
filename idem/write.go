package idem

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"unicode/utf8"
)

// Write is one of the user's own writes, or a check of something that was read,
// which commits together with the record. It is made by a store's package
// (dynamo.Put and its like); a [Store] refuses those of another one.
type Write interface {
	// Err says why the write could not be built; nil if it could. A phase with
	// such a write fails before anything is sent.
	Err() error
	// String describes the write, for tests. It may hold what is written, so it
	// is never logged.
	String() string
}

// CommitChecker is implemented by a [Write] that knows what its medium refuses of
// the writes of one commit: two on one item, say, or too many. Any of them may be
// asked, for all. [MemoryStore] does, so that a handler's test fails where its
// commit would.
type CommitChecker interface {
	Write
	// CheckCommit says why all can't be committed together; it wraps [ErrWrite].
	// Conflicts that only the medium can see are not its concern.
	CheckCommit(all []Write) error
}

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
	if c, ok := writes[0].(CommitChecker); ok {
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

// check says what is wrong with a job that is being staged.
func (j Job) check() error {
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

// JobID names a job for whoever it is handed to: the same on every delivery,
// and different from all others. name is its key in [Record.Jobs].
func JobID(operation, name string) string { return operation + "." + name }

func merged(a, b map[string]Job) map[string]Job {
	if len(b) == 0 {
		return a
	}
	m := make(map[string]Job, len(a)+len(b))
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}
