package stack

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/servers/elasticmq"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// public starts a template in the shape of a published one, in a module of its own and
// built from its sources as sam build would.
func public(t *testing.T, name string) (*Stack, *localtest.Buffer, error) {
	t.Helper()
	dir := localtest.Module(t, "../../..", "internal/local")
	if err := os.CopyFS(filepath.Join(dir, "app"), os.DirFS(filepath.Join("testdata", "public", name))); err != nil {
		t.Fatal(err)
	}
	logs := &localtest.Buffer{}
	s, err := Start(t.Context(), Options{Template: filepath.Join(dir, "app", "template.yaml"), StackName: name, Logs: logs})
	t.Cleanup(func() {
		if s != nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			t.Log(logs)
		}
	})
	return s, logs, err
}

// answers sends a request until a slow machine has an answer in time.
func answers(t *testing.T, method, url, body, want string) {
	t.Helper()
	var got localtest.Answer
	localtest.Eventually(t, url+" answers", func() bool {
		got = localtest.Send(t, method, url, body, "Content-Type", "text/plain")
		return got.Status < http.StatusInternalServerError
	})
	if got.Status >= http.StatusBadRequest || got.Body != want {
		t.Errorf("%s %s: status %d: %q, want %q", method, url, got.Status, got.Body, want)
	}
}

func TestPublicDynamoDBAPI(t *testing.T) {
	t.Setenv(envDynamoDB, dynamotest.Start(t).Endpoint)
	s, _, err := public(t, "dynamodb-api")
	if err != nil {
		t.Fatal(err)
	}
	answers(t, http.MethodPost, s.Ready().API+"/items", "tea", "")
	answers(t, http.MethodGet, s.Ready().API+"/items/tea", "", "item tea")
}

func TestPublicSQSConsumer(t *testing.T) {
	s, logs, err := public(t, "sqs-consumer")
	if err != nil {
		if !elasticmq.Required() && strings.Contains(err.Error(), elasticmq.ErrUnavailable.Error()) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	url := s.queues.made["MySqsQueue"].url
	if _, err := s.queues.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new("tea")}); err != nil {
		t.Fatal(err)
	}
	localtest.Eventually(t, "the function has the message", func() bool {
		return strings.Contains(logs.String(), "QueueConsumerFunction | message: tea")
	})
}

// Nothing would ever call its functions.
func TestPublicStepFunctionsIsRefused(t *testing.T) {
	_, _, err := public(t, "step-functions")
	const want = "StockTradingStateMachine (line 11): samekey local doesn't run AWS::Serverless::StateMachine, and no event calls the functions"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
