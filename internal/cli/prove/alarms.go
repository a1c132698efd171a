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

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/internal/cli/prove/fault"
)

// rings is how late an alarm may ring: the worker counts every five minutes, and the alarm has a period of
// five.
const rings = 12 * time.Minute

// looks are how often an alarm's state is asked for meanwhile.
const looks = 60

// trouble is that for which an alarm rings.
type trouble struct {
	alarm, name, text string
	// made makes the trouble, or says that the run hasn't made it.
	made func(context.Context, *Place) error
	ends bool // it is over, and the alarm is to end
	cost Cost
}

// troubles come behind the claims that make them. The other alarms ring by troubles of a quarter of an hour and
// more, or by those of AWS.
func troubles() []trouble {
	return []trouble{
		{"WorkerErrors", "worker-errors", "the alarm on failed workers rings when a process of the worker was killed", happenedBefore(fault.Poisoned), false, Cost{Reads: 3 * 128}},
		{"GivenUp", "given-up", "the alarm on batches that were given up rings", happenedBefore(fault.Poisoned), false, Cost{Reads: 3 * 128}},
		{"Undelivered", "undelivered", "the alarm on jobs that nobody has delivered rings when a sweep has found one", swept(stream.ReasonUndelivered), false, Cost{}},
		{"Abandoned", "abandoned", "the alarm on operations that nobody has ended rings when a sweep has found one", swept(stream.ReasonOpen), false, Cost{}},
		{"Mismatch", "mismatch", "the alarm on keys that are used again for other requests rings", mismatch, false, Cost{Bookings: mismatches + tries + 1}},
		{"WaitingParked", "parked-ends", "the alarm on parked jobs ends when none is parked", redriven, true, Cost{Reads: listing}},
	}
}

// ringing has the alarm of a parked job ring.
func ringing() Claim {
	return alarming(trouble{"WaitingParked", "parked", "the alarm on parked jobs rings while one is parked", isParked, false, Cost{}})
}

func alarms() (all []Claim) {
	for _, t := range troubles() {
		all = append(all, alarming(t))
	}
	return all
}

func alarming(t trouble) Claim {
	return Claim{
		Name: "alarms." + t.name, Text: t.text, Page: "docs/operate/runbook.md#" + strings.ToLower(t.alarm), Figure: "# s later",
		Cost: t.cost.plus(Cost{Calls: 4 * (looks + 1)}), OnStandIn: "a stand-in has no metrics that alarms are judged by",
		Examine: func(ctx context.Context, p *Place) (string, error) {
			if err := t.made(ctx, p); err != nil {
				return "", notSeen(err)
			}
			return p.ring(ctx, t)
		},
	}
}

func isParked(_ context.Context, p *Place) error {
	if p.parked == nil {
		return errors.New("no job is parked")
	}
	return nil
}

func redriven(ctx context.Context, p *Place) error {
	switch all, err := p.listed(ctx); {
	case err != nil:
		return err
	case p.parked == nil, len(all) > 0:
		return errors.New("no job was parked, or one is")
	}
	return nil
}

func happenedBefore(kind fault.Kind) func(context.Context, *Place) error {
	return func(ctx context.Context, p *Place) error {
		w, err := p.look(ctx)
		if err == nil && w.largest(kind) == 0 {
			err = fmt.Errorf("no worker has met %s", kind)
		}
		return err
	}
}

func swept(reason stream.Reason) func(context.Context, *Place) error {
	return func(_ context.Context, p *Place) error {
		if !p.found[reason] {
			return errors.New("no sweep has found one")
		}
		return nil
	}
}

// mismatches are more than MismatchThreshold.
const mismatches = 12

// mismatch sends other requests under a key.
func mismatch(ctx context.Context, p *Place) error {
	b := newBooking("mismatch", 907)
	if _, err := p.insist(ctx, b); err != nil {
		return err
	}
	for range mismatches {
		b.place++
		if _, err := p.book(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// ring waits until an alarm of the stack rings, or ends.
func (p *Place) ring(ctx context.Context, t trouble) (string, error) {
	began, wanted := time.Now(), types.StateValueAlarm
	if t.ends {
		wanted = types.StateValueOk
	}
	for range looks {
		a, err := p.alarm(ctx, t.alarm+"Alarm")
		switch {
		case err != nil:
			return "", notSeen(plainError(err))
		case a == nil:
			return "", errors.New("there is no such alarm")
		case a.StateValue == wanted:
			return fmt.Sprintf("%.0f s later", time.Since(began).Seconds()), nil
		}
		if err := sleep(ctx, p.Rings/looks); err != nil {
			return "", notSeen(err)
		}
	}
	return "", fmt.Errorf("it isn't in the state %s within %s", wanted, p.Rings)
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
