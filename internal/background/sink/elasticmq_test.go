package sink_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/servers/elasticmq"
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
		for _, want := range []string{"c", "tctt"} { // alone, and among others
			batch := deliveries(len(want))
			batch[len(want)/3].Args = large
			errs := s.Deliver(t.Context(), batch)
			if got := verdicts(errs, len(want)); got != want {
				t.Errorf("%s: %s, want %s: %v", name, got, want, errs)
			}
		}
	}
}
