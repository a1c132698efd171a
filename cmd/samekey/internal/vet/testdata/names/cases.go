// Package names has handlers for the rule names.
package names

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
)

type Leg struct{ ID string }

func reserve(ctx context.Context, name string, leg Leg) error {
	_, err := idem.Atomic(ctx, name, func(context.Context, *idem.Tx) (string, error) { return leg.ID, nil })
	return err
}

// want +5 `names: the name of this phase comes from time.Now, so the phase has another name in a retry: use a constant; in a loop, add the index or the item's id`

func bad(ctx context.Context, legs []Leg) error {
	for _, leg := range legs {
		name := fmt.Sprintf("leg/%d", time.Now().UnixNano()) // another one in each attempt
		if err := reserve(ctx, name, leg); err != nil {
			return err
		}
	}
	return nil
}

func good(ctx context.Context, legs []Leg) error {
	for i, leg := range legs {
		if err := reserve(ctx, fmt.Sprintf("leg/%d", i), leg); err != nil {
			return err
		}
	}
	return nil
}

func one(context.Context, *idem.Tx) (int, error) { return 1, nil }

func alsoBad(ctx context.Context, ev events.APIGatewayV2HTTPRequest, legs map[string]Leg) error {
	idem.Atomic(ctx, fmt.Sprint("try", rand.IntN(9)), one)     // want `names: the name of this phase comes from math/rand/v2.IntN`
	idem.Atomic(ctx, "call/"+ev.RequestContext.RequestID, one) // want `names: the name of this phase comes from RequestID, which differs between invocations`
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		idem.Atomic(ctx, lc.AwsRequestID, one) // want `names: the name of this phase comes from AwsRequestID`
	}
	for id, leg := range legs {
		reserve(ctx, "leg/"+id, leg) // want `names: these phases run in the order of a map, which differs each time: range over sorted keys, or over a slice that an earlier phase returned`
	}
	return nil
}

func twice(ctx context.Context, legs []Leg) error {
	if _, err := idem.Atomic(ctx, "order", one); err != nil {
		return err
	}
	if _, err := idem.Foreign(ctx, "order", one); err != nil { // want `names: another phase of this handler has the name "order": give this phase another name`
		return err
	}
	for range legs {
		if _, err := idem.Atomic(ctx, "leg", one); err != nil { // want `names: this loop runs the phase "leg" again, but a handler can use the name of a phase only once: add the index or the item's id to the name`
			return err
		}
	}
	return nil
}

const booked = "booked"

// One of two phases of a name runs; a result of a phase is the same in each attempt;
// the request is the same, too.
func alsoGood(ctx context.Context, ev events.APIGatewayV2HTTPRequest, fast bool) error {
	var err error
	if fast {
		_, err = idem.Atomic(ctx, booked, one)
	} else {
		_, err = idem.Foreign(ctx, booked, one)
	}
	if err != nil {
		return err
	}
	at, err := idem.Atomic(ctx, "when", func(context.Context, *idem.Tx) (int64, error) { return time.Now().Unix(), nil })
	if err != nil {
		return err
	}
	if _, err := idem.Atomic(ctx, fmt.Sprint("day/", at/86400), one); err != nil {
		return err
	}
	for {
		if _, err := idem.Atomic(ctx, "once", one); err != nil {
			return err
		}
		break
	}
	_, err = idem.Atomic(ctx, "path/"+ev.RawPath, one)
	return err
}

var (
	began   = time.Now().String()
	handler = func(ctx context.Context) (int, error) { return idem.Atomic(ctx, "in a package", one) }
)

// Atomic is not idem's.
func Atomic(context.Context, string, int) {}

// Names come through variables, loops and wrappers.
func variables(ctx context.Context) {
	idem.Atomic(ctx, began, one) // want `names: .* comes from time.Now`
	first, second := pair("a", time.Now())
	idem.Atomic(ctx, first, one)  // want `names: .* comes from time.Now`
	idem.Atomic(ctx, second, one) // want `names: .* comes from time.Now`
	third, fourth := "b", time.Now().String()
	idem.Atomic(ctx, third, one)
	idem.Atomic(ctx, fourth, one) // want `names: .* comes from time.Now`
	for _, t := range []time.Time{time.Now()} {
		idem.Atomic(ctx, t.String(), one) // want `names: .* comes from time.Now`
	}
	Atomic(ctx, time.Now().String(), 1)
	byName(time.Now().String(), ctx) // want `names: .* comes from time.Now`
	byName(both())
	third3(ctx, time.Now().String())  // want `names: .* comes from time.Now`
	fourth4(ctx, time.Now().String()) // out of sight
}

func pair(a string, t time.Time) (string, string) { return a, a }

func both() (string, context.Context) { return "a", nil }

func byName(name string, ctx context.Context) { idem.Atomic(ctx, name, one) }

func fourth4(ctx context.Context, name string) { third3(ctx, name) }
func third3(ctx context.Context, name string)  { second2(ctx, name) }
func second2(ctx context.Context, name string) { byName(name, ctx) }

func must(ctx context.Context, name string) int {
	n, _ := idem.Atomic(ctx, name, one)
	return n
}

func inOneStatement(ctx context.Context) int {
	return must(ctx, "same") + must(ctx, "same") // want `names: another phase of this handler has the name "same"`
}

type request struct{ RequestID, ID string }

// unstable finds out where a name is another one each time.
func sources(ctx context.Context, ev events.APIGatewayProxyRequest, v2 events.APIGatewayV2HTTPRequest, m events.SQSMessage, r request, stable *rand.Rand) {
	idem.Atomic(ctx, m.ReceiptHandle, one)                                // want `names: .* comes from ReceiptHandle`
	idem.Atomic(ctx, ev.RequestContext.RequestTime, one)                  // want `names: .* comes from RequestTime`
	idem.Atomic(ctx, fmt.Sprint(ev.RequestContext.RequestTimeEpoch), one) // want `names: .* comes from RequestTimeEpoch`
	idem.Atomic(ctx, fmt.Sprint(v2.RequestContext.TimeEpoch), one)        // want `names: .* comes from TimeEpoch`
	idem.Atomic(ctx, fmt.Sprint("a", os.Getpid()), one)                   // want `names: .* comes from os.Getpid`
	idem.Atomic(ctx, fmt.Sprint("b", time.Since(time.Unix(0, 0))), one)   // want `names: .* comes from time.Since`
	idem.Atomic(ctx, fmt.Sprint("c", rand.Perm(3), time.Now()), one)      // want `names: .* comes from math/rand/v2.Perm`
	idem.Atomic(ctx, fmt.Sprint("d", rand.NewPCG(1, 2)), one)             // want `names: .* comes from math/rand/v2.NewPCG`
	idem.Atomic(ctx, r.RequestID, one)
	idem.Atomic(ctx, fmt.Sprint("e", rand.NewZipf(nil, 1, 2, 3)), one)
	idem.Atomic(ctx, fmt.Sprint("f", strings.NewReplacer()), one)
	idem.Atomic(ctx, func() string { time.Now(); return "g" }(), one)
	idem.Atomic(ctx, errors.ErrUnsupported.Error(), one)
	idem.Atomic(ctx, fmt.Sprint(rand.ExpFloat64), one)
	text := "h"
	text = text + text
	idem.Atomic(ctx, text, one)
	at, _ := idem.Atomic(ctx, fmt.Sprint("i"), func(context.Context, *idem.Tx) (int64, error) { return time.Now().Unix(), nil })
	idem.Atomic(ctx, fmt.Sprint("j/", at), one)
	both := time.Now().String()
	both = "k"
	idem.Atomic(ctx, both, one) // want `names: .* comes from time.Now`
}

// A loop over a map is none around it.
func mapBefore(ctx context.Context, legs map[string]Leg, name string) {
	for range legs {
	}
	idem.Atomic(ctx, "after", one)
	idem.Atomic(ctx, name+"2", one)
	idem.Finish(ctx, one)
}
