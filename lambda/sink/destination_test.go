package sink_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/errlist"
)

// A job names no destination: whatever its data says, it goes where the program has
// said. Otherwise a client whose input becomes a job could have a function call any
// address with the function's role.
func TestJobsChooseNoDestination(t *testing.T) {
	t.Parallel()
	const evil = "http://169.254.169.254/latest/meta-data"
	args, err := json.Marshal(map[string]any{
		"QueueUrl": evil, "TopicArn": "arn:aws:sns:us-east-1:2:evil", "FunctionName": "evil", "EventBusName": "evil", "url": evil, "Endpoint": evil,
	})
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
		t.Helper()
		honest := &fake{}
		if errs := sinks(honest)[name].Deliver(t.Context(), deliveries(1)); verdictOf(errlist.Pad(errs, 1)[0]) != taken {
			t.Fatal(errs)
		}
		want := sent(t, honest).To
		for _, d := range []jobs.Delivery{
			{JobID: "op.1.0", Operation: "op", Kind: "mail", Args: args},
			{JobID: evil, Operation: evil, Kind: "mail", Args: args, Group: evil},
			{JobID: "op.1.0", Operation: "op", Kind: evil, Args: args},
			{JobID: "op.1.0", Operation: "op", Kind: "arn:aws:lambda:us-east-1:2:function:evil", Args: args},
		} {
			s.Deliver(t.Context(), []jobs.Delivery{d}) // a refusal is as good
			if f.last == nil {
				continue
			}
			if to := sent(t, f).To; to != want || strings.Contains(to, "evil") {
				t.Errorf("%+v goes to %s, want %s", d, to, want)
			}
		}
	})
}
