package idem

import (
	"context"
	"crypto/sha256"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// run.finish stores resp, or only its status, together with writes and jobs, and
// returns the stored answer. resp must be clean (see [clean]). Any error except an
// *attemptOver says why no answer is stored.
func (r *run) finish(ctx context.Context, resp Response, statusOnly bool, writes []Write, jobs []Job) (Result, error) {
	staged, err := jobsOfCommit(ctx, r, jobs)
	if err != nil {
		return Result{}, r.gate.fail(err)
	}
	stored := storedPart(resp, r.ask.core.headers)
	var made *store.Record
	reuse := func() { // let the next try of the write use the companions that an earlier try has written
		if made != nil {
			r.written = made.Overflow
		}
	}
	build := func(base *store.Record) *store.Record {
		reuse()
		now := r.ask.core.opt.Now()
		made = state.Finished(state.Advanced(base, now, nil, staged, nil), stored, now)
		switch {
		case len(resp.Body) > r.ask.core.opt.MaxBody || statusOnly:
			state.StatusOnly(made)
		case r.written != nil && r.written.SHA256 == sha256.Sum256(resp.Body):
			made.Overflow = r.written // an earlier try has written the body
		}
		return made
	}
	rec, err := r.write(ctx, trace.Finish, build, writes)
	if err != nil {
		reuse()
		return Result{}, err
	}
	res, err := r.answers().finished(ctx, rec, made, resp, len(staged))
	if err != nil {
		return Result{}, &attemptOver{err: err}
	}
	return res, nil
}
