package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/proof/prove/fault"
)

const (
	figuresPage  = "docs/inside/performance.md"
	rounds       = 21 // of which the medians are
	startsAtOnce = 4
)

// way is a path of the performance page, with the calls and units that the page has for it.
type way struct {
	name, text, route string
	calls             []string
	units, own        int // of writes, in answers
	refused           int
	again             bool // it is the second request under its key
}

func ways() []way {
	return []way{
		{name: "new", text: "a new request makes the calls of the performance page", route: "/plain", calls: []string{"PutItem", "UpdateItem"}, units: 2},
		{name: "replay", text: "a replay makes the call of the performance page; its units are in no answer", route: "/plain", calls: []string{"PutItem"}, refused: 1, again: true},
		{name: "phases", text: "a request with two phases, each with a write of its own, makes the calls of the performance page", route: "/phases", calls: []string{"PutItem", "TransactWriteItems", "TransactWriteItems"}, units: 5, own: 4},
	}
}

func figures() []Claim {
	all := make([]Claim, 0, 2+len(ways()))
	all = append(
		all,
		Claim{
			Name: "figures.start", Text: "of the time that a function's first answer takes longer than a later one, less than a quarter is Samekey's", Page: figuresPage,
			Figure: "# ms for a first answer, # ms for a later one; # µs of the start are Samekey's", Cost: Cost{Calls: invocation20 * 2 * startsAtOnce}, Examine: examineStart,
		},
		Claim{
			Name: "figures.init", Text: "by Lambda's report a start ends within the ten seconds that Lambda gives it", Page: figuresPage, Figure: "# ms, the longest of # starts",
			Cost: Cost{Calls: 1}, OnStandIn: "a stand-in writes no report of a start", Examine: examineInit,
		},
	)
	for _, a := range ways() {
		all = append(all, Claim{
			Name: "figures." + a.name, Text: a.text, Page: figuresPage, Figure: a.sum() + "; # µs in the function, # µs for the same calls by the SDK alone",
			Cost: Cost{Bookings: 2 * rounds}, Examine: a.examine,
		})
	}
	return all
}

// sum are the path's calls, with units and dollars for Samekey's own of a million requests by the price list of us-east-1.
func (a way) sum() string {
	s := fmt.Sprintf("%d calls", len(a.calls))
	if a.refused > 0 {
		return s + ", refused"
	}
	s += fmt.Sprintf(", %d write units", a.units)
	if a.own > 0 {
		s += fmt.Sprintf(" and %d of its own items", a.own)
	}
	return s + fmt.Sprintf(", %s dollars a million", strconv.FormatFloat(float64(a.units)*write/regions*1e6, 'f', -1, 64))
}

// examine measures requests of the path, each in turns with its calls made by the SDK in the same invocation.
func (a way) examine(ctx context.Context, p *Place) (string, error) {
	var took, floor []int64
	for i := range rounds {
		b := newBooking(fmt.Sprintf("figures-%s-%d", a.route[1:], i), i)
		b.route = a.route
		if a.again { // the request that it repeats isn't measured
			b = newBooking(fmt.Sprintf("figures-again-%d", i), i)
			b.route = a.route
			if first, err := p.book(ctx, b); err != nil || first.status != http.StatusCreated {
				return "", notSeen(cmp.Or(err, fmt.Errorf("the answer is %d: %.100s", first.status, first.body)))
			}
		}
		b.measured = true
		got, err := p.book(ctx, b)
		var f fault.Figures
		if err == nil {
			err = json.Unmarshal([]byte(got.figures), &f)
		}
		if err != nil || got.status != http.StatusCreated {
			return "", notSeen(cmp.Or(err, fmt.Errorf("the answer is %d: %.100s", got.status, got.body)))
		}
		if !slices.Equal(f.Calls, a.calls) || f.Refused != a.refused || f.Units != float64(a.units) || f.Own != float64(a.own) {
			return "", fmt.Errorf("%s, %d refused, %v write units and %v of its own items", strings.Join(f.Calls, ", "), f.Refused, f.Units, f.Own)
		}
		if f.Trouble != "" {
			return "", notSeen(errors.New(f.Trouble))
		}
		took, floor = append(took, f.Took), append(floor, f.Floor)
	}
	return fmt.Sprintf("%s; %d µs in the function, %d µs for the same calls by the SDK alone", a.sum(), median(took), median(floor)), nil
}

func median(all []int64) int64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// invokedWithin is more than the worker's timeout, with a start.
const invokedWithin = 40 * time.Second

// start is an invocation of the measured function, with the end of its log.
type start struct {
	fault.Start
	took time.Duration
	log  string
}

// invoke lets an invocation end that has begun, also if ctx ends: the stack is removed afterwards, with its logs.
func (p *Place) invoke(ctx context.Context, function string, payload string) ([]byte, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), invokedWithin)
	defer cancel()
	out, err := p.Lambda.Invoke(ctx, &lambda.InvokeInput{FunctionName: &function, Payload: []byte(payload), LogType: types.LogTypeTail})
	switch {
	case err != nil:
		return nil, "", plainError(err)
	case out.FunctionError != nil:
		return nil, "", fmt.Errorf("%s: %.200s", *out.FunctionError, out.Payload)
	}
	log := ""
	if out.LogResult != nil {
		raw, _ := base64.StdEncoding.DecodeString(*out.LogResult)
		log = string(raw)
	}
	return out.Payload, log, nil
}

func (p *Place) start(ctx context.Context) (s start, _ error) {
	began := time.Now()
	out, log, err := p.invoke(ctx, p.Plain, "{}")
	if err != nil {
		return s, err
	}
	s.took, s.log = time.Since(began), log
	return s, json.Unmarshal(out, &s.Start)
}

// examineStart invokes the measured function for the first time, at once, and then again.
func examineStart(ctx context.Context, p *Place) (string, error) {
	var wg sync.WaitGroup
	all, errs := make([]start, startsAtOnce), make([]error, startsAtOnce)
	for i := range all {
		wg.Go(func() { all[i], errs[i] = p.start(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return "", notSeen(err)
	}
	var first, later, made []int64
	for _, s := range all {
		if s.Events == 1 {
			first, made = append(first, s.took.Milliseconds()), append(made, s.Made)
			p.starts = append(p.starts, s.log)
		}
	}
	for range startsAtOnce {
		s, err := p.start(ctx)
		if err != nil {
			return "", notSeen(err)
		}
		if s.Events > 1 {
			later = append(later, s.took.Milliseconds())
		}
	}
	if len(first) == 0 || len(later) == 0 {
		return "", notSeen(fmt.Errorf("%d first answers, %d later ones", len(first), len(later)))
	}
	if longer := median(first) - median(later); median(made) > 1000*longer/4 {
		return "", fmt.Errorf("%d µs of %d ms are Samekey's", median(made), longer)
	}
	return fmt.Sprintf("%d ms for a first answer, %d ms for a later one; %d µs of the start are Samekey's", median(first), median(later), median(made)), nil
}

// initDuration is in Lambda's report of an invocation, as text or as JSON.
var initDuration = regexp.MustCompile(`(?:Init Duration: |"initDurationMs":\s*)(\d+(?:\.\d+)?)`)

const initLimit = 10_000 // ms

// examineInit reads the reports of the starts that examineStart has made.
func examineInit(_ context.Context, p *Place) (string, error) {
	var longest float64
	n := 0
	for _, log := range p.starts {
		if found := initDuration.FindStringSubmatch(log); found != nil {
			ms, err := strconv.ParseFloat(found[1], 64)
			if err != nil {
				return "", notSeen(err)
			}
			n, longest = n+1, max(longest, ms)
		}
	}
	if n == 0 {
		return "", notSeen(fmt.Errorf("of %d starts none has a report", len(p.starts)))
	}
	if longest >= initLimit {
		return "", fmt.Errorf("one takes %.0f ms", longest)
	}
	return fmt.Sprintf("%.0f ms, the longest of %d starts", longest, n), nil
}
