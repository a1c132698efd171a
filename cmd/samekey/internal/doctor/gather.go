package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/smithy-go"
)

// Gather asks AWS about opt's table and the resources that use the table. The facts say
// which questions had no answer. Gather fails only if ctx ends, if the stack can't be
// read, or if the table isn't known or can't be reached.
func Gather(ctx context.Context, c Clients, opt Options) (*Facts, error) {
	opt.ProviderRemembers = cmp.Or(opt.ProviderRemembers, 24*time.Hour)
	opt.Sample = cmp.Or(opt.Sample, 200)
	if opt.Now.IsZero() {
		opt.Now = time.Now()
	}
	f := &Facts{Options: opt, Now: opt.Now, Queues: make(map[string]*Queue), Refused: make(map[Source]string), unread: make(map[Source]string)}
	names, err := f.named(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := f.askTable(ctx, c.DynamoDB); err != nil {
		return nil, err
	}
	f.try(ctx, c.DynamoDB)
	if opt.TableOnly != "" {
		for _, s := range []Source{Functions, Code, Mappings, Concurrency, EventInvokes, Policies, Queues, Buses, Machines, Schedules, ScheduleRole, Simulation, Gateways, Alarms, Metrics} {
			f.miss(s, opt.TableOnly)
		}
		return f, ctx.Err()
	}
	f.askFunctions(ctx, c, names)
	f.askVersions(ctx, c)
	f.askQueues(ctx, c.SQS)
	f.askBuses(ctx, c.EventBridge)
	f.askMachines(ctx, c.StepFunctions)
	f.askSchedules(ctx, c.Scheduler)
	f.askRole(ctx, c.IAM)
	f.askGateways(ctx, c)
	f.askAlarms(ctx, c.CloudWatch)
	f.askMetrics(ctx, c.CloudWatch)
	return f, ctx.Err()
}

// reason returns the text of an AWS error without the request's id.
func reason(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return fmt.Sprintf("%s: %s", api.ErrorCode(), api.ErrorMessage())
	}
	return err.Error()
}

// code returns AWS's code of an error. It cuts the prefix that some services put before
// the code, such as com.amazonaws#.
func code(err error) string {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return ""
	}
	name := api.ErrorCode()
	return name[strings.LastIndexByte(name, '#')+1:]
}

// unreadable reports whether an answer isn't in AWS's format. For example, an emulator may
// answer "true".
func unreadable(err error) bool {
	_, ok := errors.AsType[*smithy.DeserializationError](err)
	return ok
}

func notFound(err error) bool {
	switch code(err) {
	case "ResourceNotFoundException", "NotFoundException", "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue",
		"StateMachineDoesNotExist", "InvalidArn", "NoSuchEntity":
		return true
	}
	return false
}

func denied(err error) bool {
	switch code(err) {
	case "AccessDeniedException", "AccessDenied", "UnauthorizedOperation":
		return true
	}
	return false
}
