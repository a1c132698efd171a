package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// Tasks of the worker's schedules. If a schedule's event names no task, the worker sweeps.
const (
	taskSweep = "sweep"
	taskCount = "count"
)

// askSchedules asks for the schedules that start the worker.
func (f *Facts) askSchedules(ctx context.Context, api Scheduler) {
	w := f.worker()
	if w == nil {
		return
	}
	pages := scheduler.NewListSchedulesPaginator(api, &scheduler.ListSchedulesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Schedules, reason(err))
			return
		}
		for _, s := range page.Schedules {
			if s.Target == nil || !w.is(aws.ToString(s.Target.Arn)) {
				continue
			}
			out, err := api.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: s.Name, GroupName: s.GroupName})
			if err != nil {
				f.miss(Schedules, fmt.Sprintf("schedule %s: %s", aws.ToString(s.Name), reason(err)))
				return
			}
			var input struct{ Task string }
			if out.Target != nil {
				_ = json.Unmarshal([]byte(aws.ToString(out.Target.Input)), &input) // a schedule without JSON input names no task
			}
			f.Schedules = append(f.Schedules, Schedule{aws.ToString(s.Name), cmp.Or(input.Task, taskSweep), out.State == types.ScheduleStateEnabled})
		}
	}
}

func schedules(f *Facts) ([]wrong, string) {
	w := f.worker()
	switch {
	case w == nil:
		return nil, noWorker
	case strings.Contains(w.Policy, "events.amazonaws.com"):
		return nil, "doctor doesn't read EventBridge rules, and a rule may start " + w.Name + " instead of a schedule"
	}
	var all []wrong
	for _, task := range []string{taskSweep, taskCount} {
		what := "there is no schedule for the task " + task
		for _, s := range f.Schedules {
			switch {
			case s.Task != task:
			case s.Enabled:
				what = ""
			case what != "":
				what = fmt.Sprintf("its schedule %s for the task %s is off", s.Name, task)
			}
		}
		if what != "" {
			all = append(all, wrong{where: "function " + w.Name, what: what})
		}
	}
	return all, ""
}
