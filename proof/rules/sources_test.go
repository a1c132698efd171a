package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// heldBy are the tests that hold each row of the tables of docs/use/sources.md that say so.
var heldBy = map[string][]string{
	"`SQS`": {
		"lambda.TestWhatComesAgain/SQS, delivered again",
		"lambda.TestWhatComesAgain/SQS, sent again",
		"lambda.TestWhatComesAgain/SQS, redriven",
		"lambda.TestWhatComesAgain/SQS, read in the dead-letter queue",
		"lambda.TestWhatComesAgain/SQS, another queue",
		"lambda.TestRedeliveryIsTheSameMessage",
	},
	"`SQS`, key in an attribute or the body": {
		"lambda.TestWhatComesAgain/SQS, redriven with its key",
		"lambda.TestWhatComesAgain/SQS, redriven, a key in its body",
		"lambda.TestWhatComesAgain/envelope, from the topic's archive, raw, with its key",
	},
	"`SQS` behind a topic, not raw": {
		"lambda.TestWhatComesAgain/envelope, redriven",
		"lambda.TestWhatComesAgain/envelope, from the topic's archive",
		"lambda.TestWhatComesAgain/envelope, published again",
	},
	"`SQS` behind a bus": {
		"lambda.TestWhatComesAgain/envelope, from the bus's archive",
		"lambda.TestJobInAnEnvelopeIsDoneOnce",
	},
	"`SNS`": {
		"lambda.TestWhatComesAgain/SNS, delivered again",
		"lambda.TestWhatComesAgain/SNS, published again",
		"lambda.TestWhatComesAgain/SNS, invoked again with the failed event",
		"lambda.TestWhatComesAgain/SNS, another function",
		"lambda.TestScopes",
	},
	"`EventBridge`": {
		"lambda.TestWhatComesAgain/EventBridge, delivered again",
		"lambda.TestWhatComesAgain/EventBridge, put again",
		"lambda.TestWhatComesAgain/EventBridge, a job, put again",
		"lambda.TestWhatComesAgain/EventBridge, from the archive, under its id",
		"lambda.TestWhatComesAgain/EventBridge, another function",
		"lambda.TestJobOnABusIsDoneOnce",
	},
	"`S3`": {
		"lambda.TestWhatComesAgain/S3, notified again",
		"lambda.TestWhatComesAgain/S3, written again",
		"lambda.TestWhatComesAgain/S3, another function",
		"lambda.TestNotificationsOfAnObject",
	},
	"`Kinesis`": {
		"lambda.TestWhatComesAgain/Kinesis, delivered again, or read again by another mapping",
		"lambda.TestWhatComesAgain/Kinesis, put again",
		"lambda.TestWhatComesAgain/Kinesis, another function",
	},
	"`Kafka`": {
		"lambda.TestWhatComesAgain/Kafka, delivered again, or read again by another mapping",
		"lambda.TestWhatComesAgain/Kafka, produced again",
		"lambda.TestWhatComesAgain/Kafka, the topic made anew",
		"lambda.TestWhatComesAgain/Kafka, another function",
	},
	"`DynamoDBStream`": {
		"lambda.TestWhatComesAgain/DynamoDBStream, delivered again, or read again by another mapping",
		"lambda.TestWhatComesAgain/DynamoDBStream, changed again",
		"lambda.TestWhatComesAgain/DynamoDBStream, another function",
	},
	"`Direct`": {
		"lambda.TestWhatComesAgain/Direct, invoked again",
		"lambda.TestWhatComesAgain/Direct, another version",
		"lambda.TestWhatComesAgain/Direct, another alias",
		"lambda.TestTenantsOfDirectInvocations",
	},
	"a value in JSON": {
		"lambda.TestJSONKey",
		"lambda.TestBodyKeyOnEveryDoor",
	},
	"a field of an EventBridge event's detail": {
		"lambda.ExampleJSONKey",
		"lambda.TestBodyKeyOfBatches",
	},
	"the id of a JSON-RPC request, with its method": {
		"lambda.ExampleJSONRPCKey",
		"lambda.TestJSONRPCKey",
	},
	"an MCP tool call: the tool, and a value that names the work": {
		"lambda.ExampleMCPToolKey",
		"lambda.TestMCPToolKey",
	},
	"an argument of an AppSync field, with the caller": {
		"lambda.ExampleAppSyncKey",
		"lambda.TestAppSyncKey",
		"lambda.TestAppSyncKeyComparesTheParent",
	},
	"a Step Functions execution and state": {
		"lambda.ExampleStateKey",
		"lambda.TestStateKey",
	},
}

// Each row of these tables is held by tests that exist.
func TestHeldTables(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "docs", "use", "sources.md"))
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- held: each row by the tests that proof/rules/sources_test.go names -->\n"
	parts := strings.Split(string(raw), mark)
	rows := make(map[string]bool)
	for _, part := range parts[1:] {
		table := strings.Split(part[:strings.Index(part+"\n\n", "\n\n")], "\n")
		for _, row := range table[min(len(table), 2):] {
			first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			rows[first] = true
			if len(heldBy[first]) == 0 {
				t.Errorf("held by nothing: %s", row)
			}
		}
	}
	tests := make(tests)
	for row, names := range heldBy {
		if !rows[row] {
			t.Errorf("docs/use/sources.md has no row %q any more", row)
		}
		for _, name := range names {
			if err := tests.find(name); err != nil {
				t.Errorf("%s is held by %s: %v", row, name, err)
			}
		}
	}
}
