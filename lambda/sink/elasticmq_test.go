package sink_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/servers/elasticmq"
	"github.com/samekey/samekey/lambda/sink"
)

func TestMain(m *testing.M) { os.Exit(elasticmq.Main(m)) }

// A server with AWS's limit (ElasticMQ from 1.6.16), and a code of its own for what is over
// it: the job that is too large counts against itself, alone and among others,
// which go through.
func TestOversizedJobOnElasticMQ(t *testing.T) {
	t.Parallel()
	server := elasticmq.Start(t)
	for name, attributes := range map[string]map[string]string{"jobs": nil, "jobs.fifo": {"FifoQueue": "true"}} {
		queue, err := server.Client().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		s := sink.NewQueue(server.Client(), *queue.QueueUrl)
		large := json.RawMessage(`"` + strings.Repeat("x", (1<<20)+(1<<10)) + `"`)
		for alone, want := range map[bool][]verdict{true: {counted}, false: {taken, counted, taken, taken}} {
			batch := deliveries(len(want))
			batch[len(want)/3].Args = large
			errs := s.Deliver(t.Context(), batch)
			if diff := cmp.Diff(want, verdicts(errs, len(want))); diff != "" {
				t.Errorf("%s, alone %v: %v: -want +got:\n%s", name, alone, errs, diff)
			}
		}
	}
}
