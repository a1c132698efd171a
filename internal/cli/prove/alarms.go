package prove

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// rings is how late an alarm may ring: the worker counts every five minutes, and the alarm has a period of
// five.
const rings = 12 * time.Minute

// looks are how often an alarm's state is asked for meanwhile.
const looks = 60

// ringing has the alarm of a parked job ring.
func ringing() Claim {
	return Claim{
		Name: "alarms.parked", Text: "the alarm on parked jobs rings while one is parked", Page: "docs/operate/runbook.md#waitingparked", Figure: "# s later",
		Cost: Cost{Reads: listing, Calls: 4 * (looks + 1)}, OnStandIn: "a stand-in has no metrics that alarms are judged by",
		Examine: func(ctx context.Context, p *Place) (string, error) {
			if all, err := p.parked(ctx); err != nil || len(all) == 0 {
				return "", notSeen(errors.Join(errors.New("no job is parked"), err))
			}
			return p.ring(ctx, "WaitingParkedAlarm")
		},
	}
}

// ring waits until an alarm of the stack rings.
func (p *Place) ring(ctx context.Context, resource string) (string, error) {
	began := time.Now()
	for range looks {
		a, err := p.alarm(ctx, resource)
		switch {
		case err != nil:
			return "", notSeen(plainError(err))
		case a == nil:
			return "", errors.New("there is no such alarm")
		case a.StateValue == types.StateValueAlarm:
			return fmt.Sprintf("%.0f s later", time.Since(began).Seconds()), nil
		}
		if err := sleep(ctx, p.Rings/looks); err != nil {
			return "", notSeen(err)
		}
	}
	return "", fmt.Errorf("it doesn't ring within %s", p.Rings)
}

// alarm returns the stack's alarm of a resource; nil if there is none.
func (p *Place) alarm(ctx context.Context, resource string) (*types.MetricAlarm, error) {
	pages := cloudwatch.NewDescribeAlarmsPaginator(p.Alarms, &cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: &p.Stack})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range page.MetricAlarms {
			if strings.Contains(aws.ToString(a.AlarmName), "-"+resource+"-") {
				return &a, nil
			}
		}
	}
	return nil, nil
}
