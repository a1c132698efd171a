package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// unopened is a job that can't be delivered, because its sealed args, or those of an
// earlier job of its group, can't be opened.
type unopened struct {
	delivery
	err error
}

// Drain.open opens the sealed args of jobs. If a job's data key is unavailable, the job
// waits as if its sink were down, and is never parked for this reason. If a job's args
// were altered, this counts as a failed delivery of the job. In both cases, the later
// jobs of the same group are held back.
func (d *Drain) open(ctx context.Context, all []delivery) (open []delivery, closed []unopened) {
	heldBack := make(map[string]bool) // groups
	missing := make(map[string]error) // key: key id; value: why this key's data keys are unavailable
	for _, j := range all {
		var err error
		keyID := ""
		if s := j.todo.image.Seal; s != nil {
			keyID = s.KeyID()
		}
		switch {
		case heldBack[j.Group]:
			err = fmt.Errorf("%w: the args of an earlier job of its group can't be opened", jobs.ErrHeldBack)
		case missing[keyID] != nil:
			err = missing[keyID]
		default:
			if j.Args, err = d.writer.table.Args(ctx, j.todo.image, j.name); err != nil && !errors.Is(err, store.ErrCorrupt) {
				err = fmt.Errorf("%w: the job's args can't be opened: %w", jobs.ErrSinkDown, err)
				missing[keyID] = err
			}
		}
		if err != nil {
			heldBack[j.Group] = true
			closed = append(closed, unopened{j, err})
			continue
		}
		open = append(open, j)
	}
	return open, closed
}
