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

// scheduling is how many schedules are made concurrently. One batch of the stream may
// need many schedules within seconds.
const scheduling = 8

// schedulerTime is how long one call of Queue.Put may wait for EventBridge Scheduler.
const schedulerTime = 10 * time.Second

// Queue.schedule makes schedules for those tickets of jobs that are due after more than
// maxDelay, because SQS can't delay a message for longer. It reports which tickets have
// a schedule.
func (q *Queue) schedule(ctx context.Context, tickets []jobs.Ticket) []bool {
	made := make([]bool, len(tickets))
	if q.opt.Schedule == nil {
		return made
	}
	// Scheduler gets at most half of the time until the deadline, so that Put can still
	// send tickets to SQS.
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

// Queue.create makes the schedule of a ticket. It succeeds if a schedule with this name
// exists already, because the name contains the operation and the time of the ticket.
func (q *Queue) create(ctx context.Context, t jobs.Ticket) error {
	arn, err := q.target(ctx)
	if err != nil {
		return err
	}
	at := t.Due.UTC()
	if whole := at.Truncate(time.Second); whole.Before(at) {
		at = whole.Add(time.Second) // rounded up, because a ticket that arrives before it is due must wait again
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

// Queue.target returns the queue's ARN. Once SQS has told the ARN, target doesn't ask
// again.
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

// maxOperation is the maximum length of the operation in a schedule's name. The whole
// name may have 64 characters, including a prefix and a time.
const maxOperation = 32

// scheduleName returns the name of a ticket's schedule. The name is made of the operation and the
// time, so that a person can find the schedule.
func scheduleName(t jobs.Ticket) string {
	return "samekey-" + awsname.Of(t.Operation, t.PK, maxOperation) + "-" + strconv.FormatInt(t.Due.UnixMilli(), 10)
}
