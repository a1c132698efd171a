package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
)

// Inline is what an answer costs under a limit of dynamo.Options.Inline.
type Inline struct {
	Answer     int  `json:"answer"`
	Compresses bool `json:"compresses"`
	Limit      int  `json:"inline"`
	Marked     bool `json:"marked,omitempty"` // the replay answers a marked retry
	// Dollars of a million: new requests, replays, and acknowledgements of a staged job.
	New    float64 `json:"new"`
	Replay float64 `json:"replay"`
	Ack    float64 `json:"acknowledgement"`
	// Calls to DynamoDB, which a client waits for.
	NewCalls    int `json:"new_calls"`
	ReplayCalls int `json:"replay_calls"`
}

func (in Inline) setting() string {
	if in.Marked {
		return "4 KB, marked retries"
	}
	return strconv.Itoa(in.Limit>>10) + " KB"
}

// costs returns in without its setting, to compare.
func (in Inline) costs() Inline {
	in.Limit, in.Marked = 0, false
	return in
}

// measureInline counts answers up to the default limit under it, under lower ones, and
// with marked retries.
func measureInline(ctx context.Context, db *dynamotest.DB, prices Prices) (all []Inline, _ error) {
	for _, size := range []int{1 << 10, 2 << 10, 4 << 10} {
		for _, compresses := range []bool{true, false} {
			body := noise(size)
			if compresses {
				body = order(size)
			}
			for _, in := range []Inline{{Limit: 4 << 10}, {Limit: 3 << 10}, {Limit: 2 << 10}, {Limit: 1 << 10}, {Limit: 4 << 10, Marked: true}} {
				in.Answer, in.Compresses = size, compresses
				if err := in.measure(ctx, db, prices, body); err != nil {
					return nil, fmt.Errorf("%d bytes, %s: %w", size, in.setting(), err)
				}
				all = append(all, in)
			}
		}
	}
	return all, nil
}

func (in *Inline) measure(ctx context.Context, db *dynamotest.DB, prices Prices, body string) error {
	limit := func(o *dynamo.Options) { o.Inline = in.Limit }
	repeats := request
	if in.Marked {
		repeats = retry
	}
	b, err := newBed(ctx, db)
	if err != nil {
		return err
	}
	take := func(run func(context.Context, *bed) error) (cost, error) {
		b.meter.reset()
		err := stored(limit, run)(ctx, b)
		return b.meter.total(), err
	}
	isNew, err := take(fresh(request, plain, answers(body)))
	if err != nil {
		return err
	}
	again, err := take(replayed(repeats, plain))
	if err != nil {
		return err
	}
	if b, err = newBed(ctx, db); err != nil { // a job's record
		return err
	}
	job := func(*bed) handler {
		return func(ctx context.Context) (idem.Response, error) {
			err := idem.Stage(ctx, idem.NewJob("receipt", 1))
			return created(body), err
		}
	}
	if _, err := take(fresh(request, plain, job)); err != nil {
		return err
	}
	ack, err := take(drains)
	if err != nil {
		return err
	}
	in.New, in.Replay, in.Ack = prices.of(isNew.Write, isNew.Read), prices.of(again.Write, again.Read), prices.of(ack.Write, ack.Read)
	in.NewCalls, in.ReplayCalls = total(isNew.Calls), total(again.Calls)
	return nil
}

// inline has a row for each setting that changes the costs.
func (r *Results) inline() table {
	t := table{
		title: "Costs: Answers in the record, or beside it",
		text: "`dynamo.Options.Inline` (4 KB) is the largest body in the record itself. Each write of the record, a refused write too, costs the units of its size; a body beside " +
			"the record costs its own units, a call and a unit more at the first request, and a call and a read more at each replay. *Pays from* is the number of replays " +
			"for each new request from which a setting is cheaper than the default. With a staged job its acknowledgement, too, writes the record.",
		head: []string{"answer", "body", "`Inline`", "new: dollars a million", "calls", "replay: dollars a million", "calls", "acknowledgement of a job", "pays from: replays for each new request", "with a job"},
	}
	var base Inline
	for i, in := range r.Inline {
		if i == 0 || in.Answer != base.Answer || in.Compresses != base.Compresses {
			base = in
		}
		if n := len(t.rows); n > 0 && in.costs() == r.Inline[i-1].costs() {
			t.rows[n-1][2] += ", " + in.setting()
			continue
		}
		kind := "doesn't compress"
		if in.Compresses {
			kind = "JSON"
		}
		t.rows = append(t.rows, []string{
			size(float64(in.Answer)), kind, in.setting(), dollars(in.New), strconv.Itoa(in.NewCalls), dollars(in.Replay), strconv.Itoa(in.ReplayCalls), dollars(in.Ack),
			pays(in.New-base.New, base.Replay-in.Replay), pays(in.New+in.Ack-base.New-base.Ack, base.Replay-in.Replay),
		})
	}
	return t
}

func dollars(v float64) string { return fmt.Sprintf("%.4g", v) }

// pays returns how many replays, each cheaper by less, pay for a new request that is
// dearer by more.
func pays(more, less float64) string {
	switch {
	case more == 0 && less == 0:
		return ""
	case more <= 0 && less >= 0:
		return "always"
	case less <= 0:
		return "never"
	}
	return fmt.Sprintf("%.2f", more/less)
}
