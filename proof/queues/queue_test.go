package queues_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/servers/ids"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// testQueue is a queue with a dead-letter queue, and a function behind it.
type testQueue struct {
	client       *sqs.Client
	deadName     string
	url, deadURL string
	fn           *lambdarun.Function
}

func makeQueue(t *testing.T, db *dynamotest.DB, c *sqs.Client, name, function string, receives int, timeout, visibility time.Duration, env ...string) *testQueue {
	t.Helper()
	q := &testQueue{client: c}
	base, fifo := strings.CutSuffix(name, ".fifo")
	deadName, attributes := base+"-dead", map[string]string{}
	if fifo {
		deadName += ".fifo"
		attributes["FifoQueue"] = "true"
	}
	q.deadName = deadName
	q.deadURL = createQueue(t, c, deadName, attributes)
	policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": queueARN(deadName), "maxReceiveCount": receives})
	attributes["RedrivePolicy"], attributes["VisibilityTimeout"] = string(policy), strconv.Itoa(int(visibility.Seconds()))
	q.url = createQueue(t, c, name, attributes)

	table := strings.ReplaceAll(name, ".", "-")
	if err := dynamo.CreateTable(t.Context(), db.Client(), table); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	q.fn, err = lambdarun.Start(t.Context(), lambdarun.Config{
		Name: table, Binary: self, Timeout: timeout, Stdout: os.Stderr, Stderr: os.Stderr,
		Env: append([]string{
			asFunction + "=" + function, "IDEM_TABLE=" + table,
			"QUEUE_URL=" + q.url, "QUEUE_ARN=" + queueARN(name), "AWS_ENDPOINT_URL_SQS=" + q.url[:strings.LastIndex(q.url, "/"+ids.AccountID)],
			"AWS_ENDPOINT_URL_DYNAMODB=" + db.Endpoint,
		}, append(db.Env(), env...)...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.fn.Close() })
	return q
}

func createQueue(t *testing.T, c *sqs.Client, name string, attributes map[string]string) string {
	t.Helper()
	out, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

func queueARN(name string) string {
	return "arn:aws:sqs:" + ids.Region + ":" + ids.AccountID + ":" + name
}
