package sink_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/samekey/samekey/lambda/sink"
)

// takesAll is Lambda, which queues an event without a payload as well.
type takesAll struct{ payloads []string }

func (l *takesAll) Invoke(_ context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	l.payloads = append(l.payloads, string(in.Payload))
	return &awslambda.InvokeOutput{StatusCode: 202}, nil
}

// A job that can't be made a payload isn't handed on as an event without one, which
// Lambda would take: nobody would ever do it.
func TestFunctionGetsNoEmptyEvent(t *testing.T) {
	t.Parallel()
	l := &takesAll{}
	batch := deliveries(3)
	batch[1].Args = json.RawMessage(`{"to":`)
	got := verdicts(sink.NewFunction(l, "mails").Deliver(t.Context(), batch), 3)
	if want := []verdict{taken, counted, taken}; !slices.Equal(got, want) || len(l.payloads) != 2 {
		t.Errorf("got %v by %d calls, want %v by 2", got, len(l.payloads), want)
	}
	for _, i := range []int{0, 2} { // none is taken, and each counts
		batch[i].Args = batch[1].Args
	}
	for _, name := range []string{"function", "machine"} {
		f := &fake{}
		if got := verdicts(sinks(f)[name].Deliver(t.Context(), batch), 3); !slices.Equal(got, first(3, counted)) || f.calls != nil {
			t.Errorf("%s: got %v by %d calls", name, got, len(f.calls))
		}
	}
}
