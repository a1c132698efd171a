package sink_test

import (
	"testing"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/sink"
)

func tenantOf(d jobs.Delivery) string { return d.Tenant }

func fairQueue(o *sink.QueueOptions) { o.FairBy = tenantOf }

func fairTopic(o *sink.TopicOptions) { o.FairBy = tenantOf }

// In a standard queue, and through a standard topic, a message's group is whose it
// is, and nothing of order: all go in one call.
func TestFairQueues(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]func(*fake) jobs.Sink{
		"queue": func(f *fake) jobs.Sink { return sink.NewQueue(fakeSQS{f}, "https://sqs/1/jobs", fairQueue) },
		"topic": func(f *fake) jobs.Sink { return sink.NewTopic(fakeSNS{f}, "arn:aws:sns:us-east-1:1:jobs", fairTopic) },
	} {
		for tenant, want := range map[string]string{"jane": "jane", "": "", "two words": "oD8dYRZF61OtFsGvVGygeS3IhFBbq1ft6A9NrWuRHTo"} {
			f := &fake{}
			batch := deliveries(2, "x", "x")
			batch[0].Tenant, batch[1].Tenant = tenant, tenant
			s(f).Deliver(t.Context(), batch)
			if m := sent(t, f); m.Group != want || m.Dedup != "" || names(f.calls) != "ab" {
				t.Errorf("%s: tenant %q: %+v in calls %q", name, tenant, m, names(f.calls))
			}
		}
	}
}
