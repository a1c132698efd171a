package idem

import (
	"context"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// attempt is one try at one operation. All its data is bound at the start, so nested and
// concurrent attempts can't mix. Its own methods are in write.go: they claim, read and
// write the record.
type attempt struct {
	*core
	subject
	clock
	watch

	place  *place        // in the caller's quota; nil without one
	looked bool          // a look before the claim has found the key free, at both places
	freed  *store.Record // found by that look: the claim replaces it
}

// attempt returns an attempt without a subject yet.
func (e *core) attempt() *attempt {
	a := &attempt{core: e, subject: subject{core: e}, clock: clock{core: e}}
	a.req, a.about = &a.request, &a.subject
	return a
}

// attemptAt returns an attempt at r, which is not copied.
func (e *core) attemptAt(r *Request) *attempt {
	a := e.attempt()
	a.req = r
	return a
}

// refuses tells that r is refused before an attempt.
func (e *core) refuses(ctx context.Context, r *Request, err error) {
	a := e.attemptAt(r)
	_, _ = a.watched(ctx, func(ctx context.Context) (Result, error) {
		a.tell(ctx, evRefused, nil, err)
		return Result{}, err
	})
}

// start sets the attempt's deadline, or refuses to begin.
func (a *attempt) start(ctx context.Context) error {
	a.arrives(ctx)
	return a.enough(a.pk)
}

// jobsNow returns how many jobs the record rec has now: rec keeps those that were
// delivered since. They count if the record can't be read.
func (a *attempt) jobsNow(ctx context.Context, rec *store.Record) int {
	if now, _ := a.reads(ctx, a.until(rec)); now != nil {
		return len(now.Jobs)
	}
	return len(rec.Jobs)
}

// reads returns the current record; nil without one.
func (a *attempt) reads(ctx context.Context, until time.Time) (*store.Record, error) {
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	rec, err := a.store.Load(ctx, a.pk)
	if err != nil {
		return nil, a.unavailable("resume", err)
	}
	return rec, nil
}
