package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/proof/prove/fault"
)

// rings is how late an alarm may ring: the worker counts every five minutes, and the alarm has a period of
// five.
const rings = 12 * time.Minute

// looks are how often an alarm's history is asked for meanwhile.
const looks = 60

// trouble is that for which an alarm rings.
type trouble struct {
	alarm, name, text string
	// made makes the trouble, or says that the run hasn't made it. It returns since when there is one.
	made func(context.Context, *Place) (time.Time, error)
	ends bool // it is over, and the alarm is to end
	cost Cost
}

// troubles come behind the claims that make them. The other alarms ring by troubles of a quarter of an hour and
// more, or by those of AWS.
func troubles() []trouble {
	return []trouble{
		{"WorkerErrors", "worker-errors", "the alarm on failed workers rings when a process of the worker was killed", happenedBefore(fault.Poisoned), false, Cost{Reads: 3 * 128}},
		{"GivenUp", "given-up", "the alarm on batches that were given up rings", happenedBefore(fault.Poisoned), false, Cost{Reads: 3 * 128}},
		{"Undelivered", "undelivered", "the alarm on jobs that nobody has delivered rings when a sweep has found one", swept(state.ReasonUndelivered), false, Cost{}},
		{"Abandoned", "abandoned", "the alarm on operations that nobody has ended rings when a sweep has found one", swept(state.ReasonOpen), false, Cost{}},
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
		Cost: t.cost.plus(Cost{Calls: looks + 4}), OnStandIn: "a stand-in has no metrics that alarms are judged by",
		Examine: func(ctx context.Context, p *Place) (string, error) {
			since, err := t.made(ctx, p)
			if err != nil {
				return "", notSeen(err)
			}
			return p.ring(ctx, t, since)
		},
	}
}

func isParked(_ context.Context, p *Place) (time.Time, error) {
	if p.parked == nil {
		return time.Time{}, errors.New("no job is parked")
	}
	return p.parkedAt, nil
}

func redriven(ctx context.Context, p *Place) (time.Time, error) {
	switch all, err := p.listed(ctx); {
	case err != nil:
		return time.Time{}, err
	case p.redrivenAt.IsZero(), len(all) > 0:
		return time.Time{}, errors.New("no parked job was redriven, or another one is parked")
	}
	return p.redrivenAt, nil
}

func happenedBefore(kind fault.Kind) func(context.Context, *Place) (time.Time, error) {
	return func(ctx context.Context, p *Place) (time.Time, error) {
		w, err := p.look(ctx)
		if err != nil {
			return time.Time{}, err
		}
		_, at := w.largest(kind)
		if at.IsZero() {
			err = fmt.Errorf("no worker has met %s", kind)
		}
		return at, err
	}
}

func swept(reason state.Reason) func(context.Context, *Place) (time.Time, error) {
	return func(_ context.Context, p *Place) (time.Time, error) {
		at, found := p.found[reason]
		if !found {
			return at, errors.New("no sweep has found one")
		}
		return at, nil
	}
}

// mismatches are more than MismatchThreshold.
const mismatches = 12

// mismatch sends other requests under a key.
func mismatch(ctx context.Context, p *Place) (at time.Time, _ error) {
	b := newBooking("mismatch", 907)
	if _, err := p.insist(ctx, b); err != nil {
		return at, err
	}
	at = p.now()
	for range mismatches {
		b.place++
		switch got, err := p.book(ctx, b); {
		case err != nil:
			return at, err
		case got.status != http.StatusUnprocessableEntity:
			return at, fmt.Errorf("the answer to another request under the key is %d", got.status)
		}
	}
	return at, nil
}

// ring waits until an alarm of the stack has rung, or ended, by its history: it may have done both meanwhile.
func (p *Place) ring(ctx context.Context, t trouble, since time.Time) (string, error) {
	a, err := p.alarm(ctx, t.alarm+"Alarm")
	switch {
	case err != nil:
		return "", notSeen(plainError(err))
	case a == nil:
		return "", errors.New("there is no such alarm")
	}
	var rang, ended time.Time
	for range looks {
		if rang, ended, err = p.history(ctx, a.AlarmName, since); err != nil {
			return "", notSeen(plainError(err))
		}
		at := rang
		if t.ends {
			at = ended
		}
		if !at.IsZero() {
			return fmt.Sprintf("%.0f s later", max(0, at.Sub(since)).Seconds()), nil
		}
		if err := sleep(ctx, p.Rings/looks); err != nil {
			return "", notSeen(err)
		}
	}
	if t.ends && rang.IsZero() {
		return "", notSeen(errors.New("it didn't ring before"))
	}
	return "", fmt.Errorf("not within %s", p.Rings)
}

// history says when an alarm has rung, first after a time, or last before it; and when it has ended after that time.
func (p *Place) history(ctx context.Context, alarm *string, since time.Time) (rang, ended time.Time, _ error) {
	out, err := p.Alarms.DescribeAlarmHistory(ctx, &cloudwatch.DescribeAlarmHistoryInput{
		AlarmName: alarm, HistoryItemType: types.HistoryItemTypeStateUpdate, ScanBy: types.ScanByTimestampDescending,
	})
	if err != nil {
		return rang, ended, err
	}
	for _, h := range slices.Backward(out.AlarmHistoryItems) { // the oldest first
		var of struct {
			Old struct {
				State types.StateValue `json:"stateValue"`
			} `json:"oldState"`
			New struct {
				State types.StateValue `json:"stateValue"`
			} `json:"newState"`
		}
		if err := json.Unmarshal([]byte(aws.ToString(h.HistoryData)), &of); err != nil {
			return rang, ended, err
		}
		at := aws.ToTime(h.Timestamp)
		switch later := !at.Before(since); {
		case of.New.State == types.StateValueAlarm && (rang.IsZero() || rang.Before(since)):
			rang = at
		case of.New.State == types.StateValueOk && of.Old.State == types.StateValueAlarm && later && ended.IsZero():
			ended = at
		}
	}
	return rang, ended, nil
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
