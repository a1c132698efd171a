package completer

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/awsname"
)

// scheduling is how many schedules are made concurrently, since a batch of the stream may need many
// within seconds.
const scheduling = 8

// schedulerTime is how long one call of Put may wait for Scheduler.
const schedulerTime = 10 * time.Second

// Queue.schedule makes schedules for tickets of jobs that the queue can't delay for long enough,
// and reports which tickets have a schedule.
func (q *Queue) schedule(ctx context.Context, tickets []jobs.Ticket) []bool {
	made := make([]bool, len(tickets))
	if q.opt.Schedule == nil {
		return made
	}
	// Even if Scheduler hangs, half of the time remains for the queue.
	limit := schedulerTime
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var wg sync.WaitGroup
	slots := make(chan struct{}, scheduling)
	for i, t := range tickets {
		if !t.Jobs || t.Due.Sub(q.now()) <= maxDelay {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := q.create(ctx, t)
			if made[i] = err == nil; err != nil {
				q.opt.Logger.WarnContext(ctx, "no schedule could be made: the ticket waits in its queue", "record", t.Record(), "due", t.Due, "error", err)
			}
		})
	}
	wg.Wait()
	return made
}

// Queue.create makes the schedule of a ticket. If a schedule with its name exists, create
// succeeds: the existing schedule is for the same ticket, since the name is made of the ticket's
// contents.
func (q *Queue) create(ctx context.Context, t jobs.Ticket) error {
	arn, err := q.target(ctx)
	if err != nil {
		return err
	}
	at := t.Due.UTC()
	if whole := at.Truncate(time.Second); whole.Before(at) {
		at = whole.Add(time.Second) // rounded up, since a ticket that arrives too early must wait again
	}
	_, err = q.opt.Schedule(ctx, &scheduler.CreateScheduleInput{
		Name:                  aws.String(scheduleName(t)),
		ScheduleExpression:    aws.String("at(" + at.Format("2006-01-02T15:04:05") + ")"),
		FlexibleTimeWindow:    &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion: types.ActionAfterCompletionDelete,
		Target:                &types.Target{Arn: &arn, RoleArn: &q.opt.Role, Input: aws.String(body(t))},
	})
	if _, exists := errors.AsType[*types.ConflictException](err); exists {
		return nil
	}
	return err
}

// target returns the queue's ARN. It asks the queue once.
func (q *Queue) target(ctx context.Context) (string, error) {
	if arn := q.arn.Load(); arn != nil {
		return *arn, nil
	}
	const name = sqstypes.QueueAttributeNameQueueArn
	out, err := q.api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []sqstypes.QueueAttributeName{name}})
	if err != nil {
		return "", err
	}
	arn := out.Attributes[string(name)]
	if arn == "" {
		return "", errors.New("the queue doesn't tell its ARN")
	}
	q.arn.Store(&arn)
	return arn, nil
}

// maxOperation leaves room for a prefix and a time in the 64 characters of a schedule's name.
const maxOperation = 32

// scheduleName returns the name of a ticket's schedule. The name is made of the operation and the
// time, so that a person can find the schedule.
func scheduleName(t jobs.Ticket) string {
	return "samekey-" + awsname.Of(t.Operation, t.PK, maxOperation) + "-" + strconv.FormatInt(t.Due.UnixMilli(), 10)
}
