package queues_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/elasticmq"
	"github.com/samekey/samekey/internal/servers/ids"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// patience ends a test that fails.
const patience = 10 * time.Minute

// One message that hangs is dead-lettered alone: its neighbours are done, and
// those of another group in their order.
func TestSlowMessageCostsItsNeighboursNothing(t *testing.T) {
	t.Parallel()
	db, queues := dynamotest.Start(t), elasticmq.Start(t)
	for _, does := range []string{"hang", "ignore"} {
		t.Run(does, func(t *testing.T) {
			t.Parallel()
			t.Run("standard", func(t *testing.T) {
				t.Parallel()
				q := newQueue(t, db, queues.Client(), "slow-"+does, "neighbours")
				q.send(t, "", job{ID: "m0", Does: does})
				for _, id := range []string{"m1", "m2", "m3", "m4"} {
					q.send(t, "", job{ID: id})
				}
				q.start(t, nil)
				did := q.settled(t, "m0")
				slices.Sort(did["done"])
				if diff := cmp.Diff([]string{"m1", "m2", "m3", "m4"}, did["done"]); diff != "" {
					t.Errorf("done (-want +got):\n%s", diff)
				}
			})
			t.Run("FIFO", func(t *testing.T) {
				t.Parallel()
				q := newQueue(t, db, queues.Client(), "slow-"+does+".fifo", "neighbours")
				q.send(t, "A", job{ID: "a1", Does: does})
				b := []string{"b1", "b2", "b3", "b4", "b5"}
				for _, id := range b {
					q.send(t, "B", job{ID: id})
				}
				q.start(t, func(s *eventsource.Queue) { s.BatchSize = 4 })
				if diff := cmp.Diff(b, q.settled(t, "a1")["done"]); diff != "" {
					t.Errorf("done, in order (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// maxReceives is how often the queues deliver a message.
const maxReceives = 3

// testQueue is a queue with a dead-letter queue, and a function behind it.
type testQueue struct {
	client       *sqs.Client
	name         string
	deadName     string
	url, deadURL string
	fn           *lambdarun.Function
	effects      string
	sent         int
}

// newQueue has the function time out after 4 s, and its messages come again after
// 10: the lease of what a process left is over by then.
func newQueue(t *testing.T, db *dynamotest.DB, c *sqs.Client, name, function string) *testQueue {
	t.Helper()
	return makeQueue(t, db, c, name, function, maxReceives, 4*time.Second, 10*time.Second)
}

func makeQueue(t *testing.T, db *dynamotest.DB, c *sqs.Client, name, function string, receives int, timeout, visibility time.Duration, env ...string) *testQueue {
	t.Helper()
	q := &testQueue{client: c, name: name, effects: filepath.Join(t.TempDir(), "effects")}
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
			asFunction + "=" + function, "EFFECTS=" + q.effects, "IDEM_TABLE=" + table,
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

func (q *testQueue) send(t *testing.T, group string, j job) {
	t.Helper()
	body, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	in := &sqs.SendMessageInput{QueueUrl: aws.String(q.url), MessageBody: aws.String(string(body))}
	if group != "" {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(group), aws.String(j.ID)
	}
	if _, err := q.client.SendMessage(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	q.sent++
}

func (q *testQueue) start(t *testing.T, change func(*eventsource.Queue)) {
	t.Helper()
	s := eventsource.Queue{
		Function: q.fn, API: q.client, URL: q.url, ARN: queueARN(q.name), ReportBatchItemFailures: true,
		Hooks: eventsource.Hooks{Error: func(err error) { t.Errorf("told %v", err) }},
	}
	if change != nil {
		change(&s)
	}
	m, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
}

// settled waits until each message is done or dead, demands that exactly those
// of the ids are dead, and returns what was done.
func (q *testQueue) settled(t *testing.T, deadWanted ...string) map[string][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var dead []string
	for {
		did := readEffects(t, q.effects)
		if len(did["done"])+len(dead) >= q.sent {
			if diff := cmp.Diff(deadWanted, dead); diff != "" {
				t.Errorf("dead letters (-want +got):\n%s", diff)
			}
			if woke := did["woke"]; len(woke) > 0 {
				t.Errorf("%q woke up after their report", woke)
			}
			return did
		}
		out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(q.deadURL), WaitTimeSeconds: 1, MaxNumberOfMessages: 10,
		})
		if err != nil {
			t.Fatalf("done %q, dead %q: %v", did["done"], dead, err)
		}
		dead = append(dead, q.take(t, out.Messages)...)
	}
}

// take deletes dead letters and returns their ids.
func (q *testQueue) take(t *testing.T, letters []types.Message) (ids []string) {
	t.Helper()
	for _, m := range letters {
		var j job
		if err := json.Unmarshal([]byte(*m.Body), &j); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, j.ID)
		if _, err := q.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.deadURL), ReceiptHandle: m.ReceiptHandle}); err != nil {
			t.Error(err)
		}
	}
	return ids
}
