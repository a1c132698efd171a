package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
)

// askBuses asks AWS about the buses to which the worker sends jobs. askBuses doesn't
// ask for the bus "default", because every account has this bus.
func (f *Facts) askBuses(ctx context.Context, api EventBridge) {
	w := f.worker()
	if w == nil {
		return
	}
	asked := map[string]bool{"default": true}
	for _, sink := range list(w.Env["SAMEKEY_SINKS"]) {
		_, to, _ := strings.Cut(sink, "=")
		name, ok := strings.CutPrefix(to, "events:")
		if !ok || asked[name] {
			continue
		}
		asked[name] = true
		out, err := api.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: &name})
		switch {
		case notFound(err):
			f.Buses = append(f.Buses, &Bus{Named: name, Gone: true})
		case err != nil:
			f.miss(Buses, fmt.Sprintf("bus %s: %s", name, reason(err)))
		default:
			f.Buses = append(f.Buses, &Bus{Named: name, ARN: aws.ToString(out.Arn)})
		}
	}
}

func busMissing(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	var all []wrong
	for _, b := range f.Buses {
		switch want := w.bus(b.Named); {
		case b.Gone:
			all = append(all, wrong{where: "bus " + b.Named, what: "it doesn't exist"})
		case b.ARN != want:
			all = append(all, wrong{where: "bus " + b.Named, what: fmt.Sprintf("the worker sends to %s, but the bus has the ARN %s", want, b.ARN)})
		}
	}
	return all, ""
}

// Function.bus returns the ARN of a bus. If name isn't an ARN, the bus is in the
// function's Region and account.
func (fn *Function) bus(name string) string {
	part := strings.SplitN(fn.ARN, ":", 6)
	if strings.HasPrefix(name, "arn:") || len(part) != 6 {
		return name
	}
	return strings.Join([]string{"arn", part[1], "events", part[3], part[4], "event-bus/" + name}, ":")
}
