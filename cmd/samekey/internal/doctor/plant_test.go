package doctor_test

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor"
	"github.com/samekey/samekey/cmd/samekey/internal/doctor/doctortest"
	"github.com/samekey/samekey/lambda/metrics"
)

type object = doctortest.Object

// examine lets the doctor look at a world, as the SDK's clients see it.
func examine(t *testing.T, w *doctortest.World, opt doctor.Options) *doctor.Report {
	t.Helper()
	f, err := doctor.Gather(t.Context(), doctor.NewClients(config(w), nil), opt)
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Examine(f)
}

func config(w *doctortest.World) aws.Config {
	return aws.Config{Region: "us-east-1", HTTPClient: w, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), RetryMaxAttempts: 1}
}

// options are those with which everything can be checked.
func options() doctor.Options {
	return doctor.Options{Table: "records", As: "operator", ClientRetries: 12 * time.Hour}
}

func world() *doctortest.World { return doctortest.Good(time.Now()) }

// Clocks stand still in a bubble: a slow machine's clock is not a finding.

// A deployment without mistakes has none, and everything is checked.
func TestGoodDeployment(t *testing.T) { t.Parallel(); synctest.Test(t, goodDeployment) }

func goodDeployment(t *testing.T) {
	for name, change := range map[string]func(*doctor.Options){
		"found by the table":   func(*doctor.Options) {},
		"named by their stack": func(o *doctor.Options) { o.Stack, o.Table = "orders", "" },
		"in a second":          func(o *doctor.Options) { o.Now = time.Now().Add(time.Second) },
		"as a function":        func(o *doctor.Options) { o.As = "function" },
		"as the worker":        func(o *doctor.Options) { o.As = "worker" },
	} {
		opt := options()
		change(&opt)
		r := examine(t, world(), opt)
		if at := stdcmp.Or(opt.Now, time.Now()); len(r.Findings) != 0 || len(r.NotChecked) != 0 || len(r.Good) != len(doctor.All()) || r.Table != "records" || !r.At.Equal(at) {
			t.Errorf("%s: %+v, not checked %+v", name, r.Findings, r.NotChecked)
		}
	}
}

// plant is a mistake, and the findings that it has to give.
type plant struct {
	do   func(*doctortest.World, *doctor.Options)
	find []string
}

func on(findings ...string) []string { return findings }

var plants = map[string]plant{
	"a sort key": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["KeySchema"] = append(w.Table["KeySchema"].([]any), object{"AttributeName": "sk", "KeyType": "RANGE"})
	}, on("error: table-key: table records: its key is pk HASH (S), sk RANGE ()")},
	"a key of another name": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["KeySchema"] = []any{object{"AttributeName": "id", "KeyType": "HASH"}}
	}, on("error: table-key: table records: its key is id HASH ()")},
	"a key that is a number": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["AttributeDefinitions"] = []any{object{"AttributeName": "pk", "AttributeType": "N"}}
	}, on("error: table-key: table records: its key is pk HASH (N)")},
	"five write units": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Table, "BillingModeSummary")
		w.Table["ProvisionedThroughput"] = object{"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
	}, on("warning: table-capacity: table records: it may write 5 units a second")},
	"two write units at most": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["OnDemandThroughput"] = object{"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 2}
	}, on("warning: table-capacity: table records: it may write 2 units a second")},
	"an index of two write units": {func(w *doctortest.World, _ *doctor.Options) {
		index(w)["OnDemandThroughput"] = object{"MaxWriteRequestUnits": 2}
	}, on("warning: table-capacity: table records: its index waiting may write 2 units a second")},
	"a table without its encryption key": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["SSEDescription"] = object{"Status": "ENABLED", "SSEType": "KMS", "InaccessibleEncryptionDateTime": 1763800000.5}
	}, on("error: table-status: table records: it has lost its encryption key at 2025-11-22T08:26:40Z")},
	"a table whose key is gone": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["TableStatus"] = "INACCESSIBLE_ENCRYPTION_CREDENTIALS"
	}, on("error: table-status: table records: it is INACCESSIBLE_ENCRYPTION_CREDENTIALS")},
	"a replica in another Region": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["Replicas"] = []any{object{"RegionName": "eu-west-1", "ReplicaStatus": "ACTIVE"}}
	}, on("warning: table-replicas: table records: it has replicas with eventual consistency: eu-west-1")},
	"replicas with strong consistency": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["Replicas"] = []any{object{"RegionName": "us-east-2", "ReplicaStatus": "ACTIVE"}}
		w.Table["MultiRegionConsistency"] = "STRONG"
	}, on("warning: table-replicas: table records: it has replicas with strong consistency: us-east-2")},
	"an index of one's own": {func(w *doctortest.World, _ *doctor.Options) {
		all, _ := w.Table["GlobalSecondaryIndexes"].([]any)
		w.Table["GlobalSecondaryIndexes"] = append(all, object{"IndexName": "by-route", "IndexStatus": "ACTIVE", "KeySchema": []any{object{"AttributeName": "route", "KeyType": "HASH"}}})
	}, on("warning: table-indexes: table records: the index by-route is not of the template")},
	"no index":                     {func(w *doctortest.World, _ *doctor.Options) { delete(w.Table, "GlobalSecondaryIndexes") }, on("error: table-indexes: table records: the index waiting is missing")},
	"an index that is being built": {func(w *doctortest.World, _ *doctor.Options) { index(w)["IndexStatus"] = "CREATING" }, on("error: table-indexes: table records: the index waiting is CREATING")},
	"an index with another key": {func(w *doctortest.World, _ *doctor.Options) {
		index(w)["KeySchema"] = []any{object{"AttributeName": "pk", "KeyType": "HASH"}}
	}, on("error: table-indexes: table records: the key of the index waiting is pk HASH, and should be waits HASH, wait_ms RANGE")},
	"an index without its attributes": {func(w *doctortest.World, _ *doctor.Options) {
		index(w)["Projection"] = object{"ProjectionType": "KEYS_ONLY"}
	}, on("error: table-indexes: table records: the index waiting holds KEYS_ONLY, and should hold INCLUDE about created_ms exp_s fn hn id last_err route run_ms tries wait_in")},
	"TTL on another attribute": {func(w *doctortest.World, _ *doctor.Options) { w.TTL["AttributeName"] = "expires" }, on("error: ttl-attribute: table records: TTL is on expires")},
	"TTL off":                  {func(w *doctortest.World, _ *doctor.Options) { w.TTL = object{"TimeToLiveStatus": "DISABLED"} }, on("warning: ttl-off: table records: TTL is off")},
	"milliseconds in exp_s": {func(w *doctortest.World, _ *doctor.Options) {
		w.Items[0]["exp_s"].(object)["N"] = w.Items[0]["exp_s"].(object)["N"].(string) + "000"
	}, on("error: ttl-unit: table records: exp_s of 1 of 3 records is no time in seconds, as 946767601000")},
	"another layout": {func(w *doctortest.World, _ *doctor.Options) {
		strange := w.Record("9", "orders", "done", time.Hour)
		strange["v"] = object{"N": "3"}
		w.Items = append(w.Items, strange)
	}, on("error: layout: table records: 1 of 4 items are not understood: dynamo: record is corrupt: layout version 3 is not known to this program")},
	"a route that treats all callers as one": {func(w *doctortest.World, _ *doctor.Options) {
		public := w.Record("9", "orders", "done", 24*time.Hour)
		public["scope"] = object{"S": "tenant:blue|one:"}
		w.Items = append(w.Items, public)
	}, on(`warning: one-scope: table records: all callers of "POST /orders" are one (idem.OneScope)`)},
	"no recovery": {func(w *doctortest.World, _ *doctor.Options) {
		w.Backups["PointInTimeRecoveryDescription"] = object{"PointInTimeRecoveryStatus": "DISABLED"}
	}, on("warning: recovery: table records: point-in-time recovery is off")},
	"no protection": {func(w *doctortest.World, _ *doctor.Options) { w.Table["DeletionProtectionEnabled"] = false }, on("note: protection: table records: deletion protection is off")},
	"a stream of keys": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["StreamSpecification"].(object)["StreamViewType"] = "KEYS_ONLY"
	}, on("error: stream-view: table records: its stream shows KEYS_ONLY")},
	"no stream": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Table, "StreamSpecification")
		delete(w.Table, "LatestStreamArn")
	}, on("error: stream-view: table records: it has no stream")},
	"a stream that nobody reads": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mappings = slices.DeleteFunc(w.Mappings, func(m object) bool { return m["UUID"] == "stream" })
	}, on("error: stream-reader: table records: no function reads its stream")},
	"a mapping that is off": {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["State"] = "Disabled" }, on("error: stream-reader: mapping of stream to worker: it is Disabled (UUID stream)")},
	"three readers": {func(w *doctortest.World, _ *doctor.Options) {
		readers(w, "second", "third")
	}, on("warning: stream-readers: table records: 3 mappings read its stream: of worker, worker, worker")},
	"a filter without removals": {func(w *doctortest.World, _ *doctor.Options) {
		c := w.Mapping("stream")["FilterCriteria"].(object)
		c["Filters"] = c["Filters"].([]any)[:1]
	}, on("error: stream-filters: mapping of stream to worker: its filters leave out an open record that was removed, a stuck record that was removed, a finished record with jobs that was removed")},
	"a filter without stuck": {func(w *doctortest.World, _ *doctor.Options) {
		c := w.Mapping("stream")["FilterCriteria"].(object)
		c["Filters"].([]any)[0] = object{"Pattern": `{"dynamodb":{"NewImage":{"st":{"S":["open","done"]}}}}`}
	}, on("error: stream-filters: mapping of stream to worker: its filters leave out a stuck record")},
	"a filter without renewals": {func(w *doctortest.World, _ *doctor.Options) {
		c := w.Mapping("stream")["FilterCriteria"].(object)
		c["Filters"] = append(c["Filters"].([]any)[1:],
			object{"Pattern": `{"eventName":["INSERT"],"dynamodb":{"NewImage":{"st":{"S":["open"]}}}}`},
			object{"Pattern": `{"dynamodb":{"NewImage":{"st":{"S":["done","stuck"]}}}}`})
	}, on("error: stream-filters: mapping of stream to worker: its filters leave out an open record that is renewed")},
	"filters whose key is gone": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Mapping("stream"), "FilterCriteria")
		w.Mapping("stream")["FilterCriteriaError"] = object{"ErrorCode": "KMSAccessDeniedException", "Message": "no key"}
	}, on("error: stream-filters: mapping of stream to worker: its filters can't be read: KMSAccessDeniedException: no key")},
	"a filter on tickets": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("tickets")["FilterCriteria"] = object{"Filters": []any{object{"Pattern": `{"body":{"kind":["a"]}}`}}}
	}, on("error: tickets-filters: mapping of queue tickets to worker: it has a filter")},
	"a stream that fails": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("stream")["LastProcessingResult"] = "PROBLEM: Function call failed"
	}, on("error: mapping-result: mapping of stream to worker: PROBLEM: Function call failed")},
	"a queue that fails": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("tickets")["LastProcessingResult"] = "PROBLEM: Lambda failed to assume your function execution role."
	}, on("error: mapping-result: mapping of queue tickets to worker: PROBLEM: Lambda failed to assume your function execution role.")},
	"retries without an end": {func(w *doctortest.World, _ *doctor.Options) { delete(w.Mapping("stream"), "MaximumRetryAttempts") }, on("error: stream-retries: mapping of stream to worker: it retries a batch until its records are a day old")},
	"a function that logs its errors only": {func(w *doctortest.World, _ *doctor.Options) {
		w.Function("orders")["LoggingConfig"] = object{"LogFormat": "JSON", "ApplicationLogLevel": "ERROR"}
	}, on("error: log-level: function orders: its ApplicationLogLevel is ERROR")},
	"no retries": {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["MaximumRetryAttempts"] = 0 }, on("error: stream-retries: mapping of stream to worker: it gives a batch up after 0 retries")},
	"no bisecting": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("stream")["BisectBatchOnFunctionError"] = false
	}, on("warning: stream-bisect: mapping of stream to worker: BisectBatchOnFunctionError is off")},
	"no destination for failures": {func(w *doctortest.World, _ *doctor.Options) { delete(w.Mapping("stream"), "DestinationConfig") }, on("warning: stream-on-failure: mapping of stream to worker: it has no on-failure destination")},
	"a start at the end":          {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["StartingPosition"] = "LATEST" }, on("warning: stream-start: mapping of stream to worker: StartingPosition is LATEST")},
	"six hours of age":            {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["MaximumRecordAgeInSeconds"] = 21600 }, on("warning: stream-age: mapping of stream to worker: it gives up records that are 21600 s old")},
	"no report of the stream":     {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["FunctionResponseTypes"] = []any{} }, on("error: report-failures: mapping of stream to worker: FunctionResponseTypes has no ReportBatchItemFailures")},
	"no report of a queue":        {func(w *doctortest.World, _ *doctor.Options) { delete(w.Mapping("receipts"), "FunctionResponseTypes") }, on("error: report-failures: mapping of queue receipts to receipts: FunctionResponseTypes has no ReportBatchItemFailures")},
	"a sink that is gone": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_SINKS"] = "mail=sqs:https://sqs.us-east-1.amazonaws.com/123456789012/mails"
	}, on("error: queue-missing: queue https://sqs.us-east-1.amazonaws.com/123456789012/mails: it doesn't exist")},
	"no schedule of the sweep": {func(w *doctortest.World, _ *doctor.Options) {
		w.Schedules = slices.DeleteFunc(w.Schedules, func(s object) bool { return s["Name"] == "worker-sweep" })
	}, on("error: schedules: function worker: there is no schedule for the task sweep")},
	"a schedule that is off": {func(w *doctortest.World, _ *doctor.Options) { w.Schedule("count")["State"] = "DISABLED" }, on("error: schedules: function worker: its schedule worker-count for the task count is off")},
	"a schedule of another Region's worker": {func(w *doctortest.World, _ *doctor.Options) {
		w.Schedule("sweep")["Target"].(object)["Arn"] = "arn:aws:lambda:eu-west-1:123456789012:function:worker"
	}, on("error: schedules: function worker: there is no schedule for the task sweep")},
	"both schedules for one task": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Schedule("count")["Target"].(object), "Input") // a sweep, then
	}, on("error: schedules: function worker: there is no schedule for the task count")},
	"a bus that is gone": {func(w *doctortest.World, _ *doctor.Options) { delete(w.Buses, "audit") }, on("error: bus-missing: bus audit: it doesn't exist")},
	"a bus of another account": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_SINKS"] = "audit=events:arn:aws:events:us-east-1:999999999999:event-bus/audit"
	}, on("error: bus-missing: bus arn:aws:events:us-east-1:999999999999:event-bus/audit: it doesn't exist")},
	"a bus of another Region": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_SINKS"] = "audit=events:arn:aws:events:eu-west-1:123456789012:event-bus/audit"
		w.Buses["arn:aws:events:eu-west-1:123456789012:event-bus/audit"] = w.Buses["audit"] // by its name alone
	}, on("error: bus-missing: bus arn:aws:events:eu-west-1:123456789012:event-bus/audit: the worker sends to arn:aws:events:eu-west-1:123456789012:event-bus/audit, and AWS knows arn:aws:events:us-east-1:123456789012:event-bus/audit")},
	"a state machine that is gone": {func(w *doctortest.World, _ *doctor.Options) { w.Machines = nil }, on("error: machine-standard: state machine arn:aws:states:us-east-1:123456789012:stateMachine:ship: it doesn't exist")},
	"a state machine that is being deleted": {func(w *doctortest.World, _ *doctor.Options) {
		machine(w)["status"] = "DELETING"
	}, on("error: machine-standard: state machine arn:aws:states:us-east-1:123456789012:stateMachine:ship: it doesn't exist")},
	"an express workflow": {func(w *doctortest.World, _ *doctor.Options) { machine(w)["type"] = "EXPRESS" }, on("error: machine-standard: state machine arn:aws:states:us-east-1:123456789012:stateMachine:ship: its type is EXPRESS, which keeps no names of executions")},
	"a role that is gone": {func(w *doctortest.World, _ *doctor.Options) { w.Roles = nil }, on("error: schedule-role: role arn:aws:iam::123456789012:role/samekey/later: it doesn't exist")},
	"a role of another account": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_SCHEDULE_ROLE"] = "arn:aws:iam::999999999999:role/samekey/later"
	}, on("error: schedule-role: role arn:aws:iam::999999999999:role/samekey/later: it doesn't exist")},
	"a role of the worker": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Trust = strings.ReplaceAll(w.Roles["later"].Trust, "scheduler.", "lambda.")
	}, on("error: schedule-role: role arn:aws:iam::123456789012:role/samekey/later: scheduler.amazonaws.com may not assume it")},
	"a role that nobody may assume": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Trust = strings.ReplaceAll(w.Roles["later"].Trust, `"Allow"`, `"Deny"`)
	}, on("error: schedule-role: role arn:aws:iam::123456789012:role/samekey/later: scheduler.amazonaws.com may not assume it")},
	"a role that anybody of the account may assume": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Trust = `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}]}`
	}, on("error: schedule-role: role arn:aws:iam::123456789012:role/samekey/later: scheduler.amazonaws.com may not assume it")},
	"a role for another queue": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Allowed = []string{"arn:aws:sqs:us-east-1:123456789012:receipts"}
	}, on("error: schedule-role: role arn:aws:iam::123456789012:role/samekey/later: it may not send to arn:aws:sqs:us-east-1:123456789012:tickets")},
	"tickets that nobody reads": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mappings = slices.DeleteFunc(w.Mappings, func(m object) bool { return m["UUID"] == "tickets" })
	}, on("error: tickets-reader: queue tickets: worker doesn't read it")},
	"a FIFO queue of tickets": {func(w *doctortest.World, _ *doctor.Options) {
		fifo := w.Queues["tickets"]
		fifo["QueueArn"] += ".fifo"
		w.Queues["tickets.fifo"] = fifo
		w.Env("worker")["SAMEKEY_TICKETS_URL"] = "https://sqs.us-east-1.amazonaws.com/123456789012/tickets.fifo"
		w.Mapping("tickets")["EventSourceArn"] = fifo["QueueArn"]
		w.Roles["later"].Allowed = []string{fifo["QueueArn"]}
	}, on("error: tickets-fifo: function worker: SAMEKEY_TICKETS_URL names a FIFO queue")},
	"a visibility of one timeout": {func(w *doctortest.World, _ *doctor.Options) { w.Queues["tickets"]["VisibilityTimeout"] = "120" }, on("warning: queue-visibility: queue tickets: VisibilityTimeout is 2m0s, and worker may take 2m0s: at least 720 is asked for")},
	"no dead letters":             {func(w *doctortest.World, _ *doctor.Options) { delete(w.Queues["receipts"], "RedrivePolicy") }, on("error: queue-redrive: queue receipts: it has no redrive policy")},
	"one receive": {func(w *doctortest.World, _ *doctor.Options) {
		w.Queues["receipts"]["RedrivePolicy"] = redrive("receipts-dead", "1")
	}, on("warning: queue-receives: queue receipts: maxReceiveCount is 1")},
	"five receives of a ticket": {func(w *doctortest.World, _ *doctor.Options) {
		w.Queues["tickets"]["RedrivePolicy"] = redrive("tickets-dead", "5")
	}, on("error: tickets-wait: queue tickets: maxReceiveCount is 5")},
	"tickets for ten days":   {func(w *doctortest.World, _ *doctor.Options) { w.Queues["tickets"]["MessageRetentionPeriod"] = "864000" }, on("error: tickets-wait: queue tickets: MessageRetentionPeriod is 240h")},
	"a worker that may loop": {func(w *doctortest.World, _ *doctor.Options) { w.RecursiveLoop = "Allow" }, on("note: recursion: function worker: its RecursiveLoop is Allow")},
	"dead letters for four days": {func(w *doctortest.World, _ *doctor.Options) {
		w.Queues["tickets-dead"]["MessageRetentionPeriod"] = "345600"
	}, on("warning: dead-letters-kept: queue tickets-dead: MessageRetentionPeriod is 96h, and that of its source is 336h")},
	"messages for less than the tries": {func(w *doctortest.World, _ *doctor.Options) { w.Queues["receipts"]["MessageRetentionPeriod"] = "600" }, on("error: queue-kept: queue receipts: MessageRetentionPeriod is 10m, and 5 receives take up to 15m")},
	"a function with another table": {func(w *doctortest.World, o *doctor.Options) {
		o.Stack = "orders"
		w.Env("receipts")["IDEM_TABLE"] = "old-records"
	}, on("error: env-table: function receipts: IDEM_TABLE is old-records")},
	"a function with the table of another Region": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("orders")["IDEM_TABLE"] = "arn:aws:dynamodb:eu-west-1:123456789012:table/records"
	}, on("error: env-table: function orders: IDEM_TABLE is arn:aws:dynamodb:eu-west-1:123456789012:table/records")},
	"a function with the table of another account": {func(w *doctortest.World, o *doctor.Options) {
		o.Stack = "orders"
		w.Env("orders")["IDEM_TABLE"] = "arn:aws:dynamodb:us-east-1:999999999999:table/records"
	}, on("error: env-table: function orders: IDEM_TABLE is arn:aws:dynamodb:us-east-1:999999999999:table/records")},
	"a table that is named by its ARN, and a function with another": {func(w *doctortest.World, o *doctor.Options) {
		o.Table = "arn:aws:dynamodb:us-east-1:123456789012:table/records"
		w.Env("orders")["IDEM_TABLE"] = "arn:aws:dynamodb:us-west-1:123456789012:table/records"
	}, on("error: env-table: function orders: IDEM_TABLE is arn:aws:dynamodb:us-west-1:123456789012:table/records")},
	"a function of another Region": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_FUNCTIONS"] = "arn:aws:lambda:us-east-1:123456789012:function:orders,arn:aws:lambda:eu-west-1:123456789012:function:receipts"
	}, on("error: completes: function worker: SAMEKEY_FUNCTIONS has arn:aws:lambda:eu-west-1:123456789012:function:receipts, which doesn't exist")},
	"an alias with another table": {func(w *doctortest.World, _ *doctor.Options) {
		alias(w, "orders")["Environment"].(object)["Variables"].(object)["IDEM_TABLE"] = "arn:aws:dynamodb:us-east-1:999999999999:table/records"
	}, on("error: env-table: function orders:live: IDEM_TABLE is arn:aws:dynamodb:us-east-1:999999999999:table/records")},
	"a function with another App": {func(w *doctortest.World, _ *doctor.Options) { w.Env("orders")["SAMEKEY_APP"] = "order" }, on("warning: env-app: function orders: SAMEKEY_APP is order, and others have orders")},
	"a function that is gone": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_FUNCTIONS"] = "orders,refunds:live"
	}, on("error: completes: function worker: SAMEKEY_FUNCTIONS has refunds:live, which doesn't exist")},
	"a function that nobody completes": {func(w *doctortest.World, _ *doctor.Options) { w.Env("worker")["SAMEKEY_FUNCTIONS"] = "" }, on("error: completes-all: function worker: SAMEKEY_FUNCTIONS doesn't have orders, which has resumable requests")},
	"a worker that is too short": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Function("orders"), "Timeout")
		w.Function("worker")["Timeout"] = 3
	}, on("error: worker-timeout: function worker: its Timeout is 3s, and that of orders is 3s")},
	"a function longer than its API": {func(w *doctortest.World, _ *doctor.Options) { w.Function("orders")["Timeout"] = 60 }, on(
		"warning: gateway-timeout: function orders: its Timeout is 1m0s, and API httpapi001 waits for 30s",
		"warning: gateway-timeout: function orders: its Timeout is 1m0s, and API restapi001 waits for 29s",
	)},
	"a policy with a list of APIs": {func(w *doctortest.World, _ *doctor.Options) {
		w.Policies["orders"] = strings.ReplaceAll(w.Policies["orders"], `"arn:aws:execute-api:us-east-1:123456789012:httpapi001/*/POST/orders"`,
			`["arn:aws:execute-api:us-east-1:123456789012:httpapi001/*/POST/orders","arn:aws:execute-api:us-east-1:123456789012:httpapi001/*/PUT/orders"]`)
		w.Function("orders")["Timeout"] = 60
	}, on(
		"warning: gateway-timeout: function orders: its Timeout is 1m0s, and API httpapi001 waits for 30s",
		"warning: gateway-timeout: function orders: its Timeout is 1m0s, and API restapi001 waits for 29s",
	)},
	"an API shorter than its function": {func(w *doctortest.World, _ *doctor.Options) {
		w.Integrations["httpapi001"][0]["timeoutInMillis"] = 5000
	}, on("warning: gateway-timeout: function orders: its Timeout is 15s, and API httpapi001 waits for 5s")},
	"a REST API that takes bytes for text": {func(w *doctortest.World, _ *doctor.Options) { w.BinaryMediaTypes = nil }, on("note: gateway-bytes: function orders: the REST API restapi001 in front of it has no binary media types")},
	"a function of ten minutes": {func(w *doctortest.World, _ *doctor.Options) {
		w.Function("orders")["Timeout"] = 600
		w.Function("worker")["Timeout"] = 700
		w.Queues["tickets"]["VisibilityTimeout"] = "4200"
	}, on(
		"warning: gateway-timeout: function orders: its Timeout is 10m0s, and API httpapi001 waits for 30s",
		"warning: gateway-timeout: function orders: its Timeout is 10m0s, and API restapi001 waits for 29s",
		"warning: lease: function orders: its Timeout is 10m0s",
	)},
	"one retry of long events": {func(w *doctortest.World, _ *doctor.Options) {
		w.Function("receipts")["Timeout"], w.EventInvokes = 120, map[string]object{"receipts": {"MaximumRetryAttempts": 1}}
		w.Queues["receipts"]["VisibilityTimeout"] = "800"
	}, on("warning: asynchronous: function receipts: its MaximumRetryAttempts is 1, and its Timeout of 2m0s needs 2")},
	"no retry of short events": {func(w *doctortest.World, _ *doctor.Options) {
		w.EventInvokes = map[string]object{"receipts": {"MaximumRetryAttempts": 0}}
	}, on("warning: asynchronous: function receipts: its MaximumRetryAttempts is 0, and its Timeout of 30s needs 1")},
	"events that are soon too old": {func(w *doctortest.World, _ *doctor.Options) {
		w.Function("receipts")["Timeout"], w.EventInvokes = 120, map[string]object{"receipts": {"MaximumEventAgeInSeconds": 360}}
		w.Policies["receipts"] = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"lambda:InvokeFunction"}]}`
		w.Queues["receipts"]["VisibilityTimeout"] = "800"
	}, on("warning: asynchronous: function receipts: its MaximumEventAgeInSeconds is 6m0s, and with its Timeout of 2m0s a retry may come after 7m0s")},
	"no concurrency":                    {func(w *doctortest.World, _ *doctor.Options) { w.Concurrency = map[string]int{"orders": 0} }, on("error: concurrency: function orders: its reserved concurrency is 0")},
	"one worker at a time":              {func(w *doctortest.World, _ *doctor.Options) { w.Concurrency = map[string]int{"worker": 1} }, on("warning: concurrency: function worker: its reserved concurrency is 1")},
	"clients that retry for three days": {func(_ *doctortest.World, o *doctor.Options) { o.ClientRetries = 72 * time.Hour }, on("error: retention-clients: function orders: its answers are kept for 24h, and clients retry for 72h")},
	"a consumer that forgets": {func(w *doctortest.World, _ *doctor.Options) {
		w.Items[1] = w.Record("2", "receipts", "done", 24*time.Hour)
	}, on("error: retention-queue: function receipts: it remembers a message for 24h, and queue receipts may deliver it again for 672h")},
	"a grace of a day":                   {func(w *doctortest.World, _ *doctor.Options) { w.Env("worker")["SAMEKEY_GRACE"] = "24h" }, on("warning: provider-keys: function worker: an abandoned request is taken up 24h15m15s after its claim, and the provider remembers a key for 24h")},
	"a provider that forgets in an hour": {func(_ *doctortest.World, o *doctor.Options) { o.ProviderRemembers = time.Hour }, on("warning: provider-keys: function worker: an abandoned request is taken up 20m15s after its claim, and the provider remembers a key for 1h")},
	"no alarm on WaitingStuck": {func(w *doctortest.World, _ *doctor.Options) {
		w.Alarms = slices.DeleteFunc(w.Alarms, func(a object) bool { return a["MetricName"] == "WaitingStuck" })
	}, on("warning: alarms: alarms of App orders: there is none on WaitingStuck")},
	"alarms of another App": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_APP"], w.Env("orders")["SAMEKEY_APP"] = "shop", "shop"
		w.Metrics[0]["Dimensions"] = []any{object{"Name": "App", "Value": "shop"}}
	}, on("warning: alarms: alarms of App shop: there is none on " + alarmed(func(m metrics.Metric) bool { return m.Alarm.Name != "" }))},
	"alarms that nobody hears": {func(w *doctortest.World, _ *doctor.Options) { silence(w) }, on("note: alarms-heard: alarms of App orders: nobody hears those on " + alarmed(func(metrics.Metric) bool { return true }))},
	"a filter of one namespace": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("stream")["FilterCriteria"] = object{"Filters": []any{
			object{"Pattern": `{"dynamodb":{"NewImage":{"pk":{"S":[{"prefix":"v1##"}]}}}}`}, object{"Pattern": `{"userIdentity":{"principalId":["dynamodb.amazonaws.com"]}}`},
		}}
	}, on("error: stream-filters: mapping of stream to worker: its filters leave out an open record, an open record that is renewed, a finished record, a stuck record")},
	"functions without hooks": {func(w *doctortest.World, _ *doctor.Options) {
		w.Metrics[0]["Dimensions"] = []any{object{"Name": "App", "Value": "another"}}
	}, on("warning: hooks: metrics of App orders: there is no Requests, though the sample has a request of " + time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC).Format(time.RFC3339))},
	"an operator who may not write": {func(w *doctortest.World, _ *doctor.Options) {
		w.Refused["DynamoDB.UpdateItem"] = "AccessDeniedException"
	}, on("error: rights: the caller's credentials, as operator: dynamodb:UpdateItem is refused (AccessDeniedException: not for tests)")},
	"a function that may not claim": {func(w *doctortest.World, o *doctor.Options) {
		o.As = "function"
		w.Refused["DynamoDB.PutItem"] = "AccessDeniedException"
	}, on("error: rights: the caller's credentials, as function: dynamodb:PutItem is refused (AccessDeniedException: not for tests)")},
	"a clock that is seconds behind AWS":   {func(w *doctortest.World, _ *doctor.Options) { w.Now = w.Now.Add(7 * time.Second) }, on("warning: clock: this machine's clock: it is 7s behind")},
	"a clock that is a minute ahead of it": {func(w *doctortest.World, _ *doctor.Options) { w.Now = w.Now.Add(-time.Minute) }, on("warning: clock: this machine's clock: it is 1m0s ahead")},
}

// sound are deployments without a mistake, however they look.
var sound = map[string]func(*doctortest.World){
	"aliases": func(w *doctortest.World) {
		for _, name := range []string{"orders", "receipts", "worker"} {
			alias(w, name)
			w.Function(name)["Environment"] = object{"Variables": object{"IDEM_TABLE": "records-dev"}} // of $LATEST
		}
		w.Versions["worker:live"]["Environment"].(object)["Variables"].(object)["SAMEKEY_FUNCTIONS"] = "orders:live"
		for _, task := range []string{"sweep", "count"} {
			w.Schedule(task)["Target"].(object)["Arn"] = "arn:aws:lambda:us-east-1:123456789012:function:worker:live"
		}
	},
	"an alias that nothing uses": func(w *doctortest.World) {
		w.Aliases = map[string][]string{"worker": {"old"}}
		w.Versions = map[string]object{"worker:old": clone(w.Function("worker"))}
		w.Versions["worker:old"]["Timeout"] = 10
		w.Versions["worker:old"]["Environment"].(object)["Variables"].(object)["SAMEKEY_APP"] = "shop"
	},
	"a worker without SAMEKEY_APP": func(w *doctortest.World) {
		delete(w.Env("worker"), "SAMEKEY_APP")
	},
	"a worker without any SAMEKEY_APP": func(w *doctortest.World) {
		delete(w.Env("worker"), "SAMEKEY_APP")
		delete(w.Env("orders"), "SAMEKEY_APP")
		w.Metrics[0]["Dimensions"] = []any{object{"Name": "App", "Value": "worker"}}
		for _, a := range w.Alarms {
			a["Dimensions"] = []any{object{"Name": "App", "Value": "worker"}}
		}
	},
	"filters of its namespaces": func(w *doctortest.World) {
		w.Env("worker")["SAMEKEY_NAMESPACES"] = "rides, shop"
		w.Mapping("stream")["FilterCriteria"] = object{"Filters": []any{
			object{"Pattern": `{"dynamodb":{"NewImage":{"pk":{"S":[{"prefix":"v1#rides#"},{"prefix":"v1#shop#"}]}}}}`},
			object{"Pattern": `{"userIdentity":{"principalId":["dynamodb.amazonaws.com"]}}`},
		}}
	},
	"an emulator that tells units of a table on demand": func(w *doctortest.World) {
		w.Table["ProvisionedThroughput"] = object{"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
		index(w)["ProvisionedThroughput"] = object{"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
	},
	"a limit of its writes": func(w *doctortest.World) {
		w.Table["OnDemandThroughput"] = object{"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 1000}
	},
	"no schedules of its own": func(w *doctortest.World) {
		delete(w.Env("worker"), "SAMEKEY_SCHEDULE_ROLE")
		w.Roles = nil
	},
	"a role for more than schedules": func(w *doctortest.World) {
		w.Roles["later"].Trust = `{"Statement":[{"Effect":"Allow","Principal":{"Service":["lambda.amazonaws.com","scheduler.amazonaws.com"]},"Action":["sts:TagSession","sts:*"]}]}`
	},
	"the batch before failed": func(w *doctortest.World) { w.Mapping("stream")["LastProcessingResult"] = "No records processed" },
}

// A deployment that looks otherwise, and has no mistake, has none.
func TestSoundDeployments(t *testing.T) { t.Parallel(); synctest.Test(t, soundDeployments) }

func soundDeployments(t *testing.T) {
	for name, change := range sound {
		w := world()
		change(w)
		r := examine(t, w, options())
		if len(r.Findings) != 0 || len(r.NotChecked) != 0 {
			t.Errorf("%s: %+v, not checked %+v", name, r.Findings, r.NotChecked)
		}
	}
}

// alias deploys a function by the alias live: its mappings, permissions and integrations
// are the alias's, and so are the variables of its version, which are returned.
func alias(w *doctortest.World, name string) object {
	if w.Aliases == nil {
		w.Aliases, w.Versions = make(map[string][]string), make(map[string]object)
	}
	arn := "arn:aws:lambda:us-east-1:123456789012:function:" + name
	w.Aliases[name] = []string{"live"}
	w.Versions[name+":live"] = clone(w.Function(name))
	for _, m := range w.Mappings {
		if m["FunctionArn"] == arn {
			m["FunctionArn"] = arn + ":live"
		}
	}
	if p, ok := w.Policies[name]; ok {
		w.Policies[name+":live"] = p
		delete(w.Policies, name)
	}
	for _, all := range w.Integrations {
		for _, i := range all {
			i["integrationUri"] = strings.ReplaceAll(i["integrationUri"].(string), arn+"/", arn+":live/")
		}
	}
	for _, all := range w.Resources {
		for _, r := range all {
			i := r["resourceMethods"].(object)["POST"].(object)["methodIntegration"].(object)
			i["uri"] = strings.ReplaceAll(i["uri"].(string), arn+"/", arn+":live/")
		}
	}
	return w.Versions[name+":live"]
}

func clone(o object) (c object) {
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		panic(err)
	}
	return c
}

// machine is the state machine that jobs start.
func machine(w *doctortest.World) object {
	return w.Machines["arn:aws:states:us-east-1:123456789012:stateMachine:ship"]
}

// readers gives the stream more mappings like its own.
func readers(w *doctortest.World, uuids ...string) {
	for _, uuid := range uuids {
		m := clone(w.Mapping("stream"))
		m["UUID"] = uuid
		w.Mappings = append(w.Mappings, m)
	}
}

// method is the integration of the REST API's method.
func method(w *doctortest.World) object {
	return w.Resources["restapi001"][0]["resourceMethods"].(object)["POST"].(object)["methodIntegration"].(object)
}

// index is the table's first index.
func index(w *doctortest.World) object { return w.Table["GlobalSecondaryIndexes"].([]any)[0].(object) }

func redrive(to, receives string) string {
	return `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:` + to + `","maxReceiveCount":"` + receives + `"}`
}

// alarmed names the metrics that can have an alarm.
func alarmed(which func(metrics.Metric) bool) string {
	var names []string
	for _, m := range metrics.All() {
		if which(m) {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}

func silence(w *doctortest.World) {
	for _, a := range w.Alarms {
		a["AlarmActions"] = []any{}
	}
}

// together are mistakes of one deployment, which hide no other of it. The other ones have a
// deployment each.
var together = [][]string{
	{
		"TTL off", "a FIFO queue of tickets", "a REST API that takes bytes for text", "a bus of another Region", "a clock that is a minute ahead of it",
		"a consumer that forgets", "a filter without removals", "a function longer than its API", "a function of another Region",
		"a function that logs its errors only", "a function that may not claim", "a function with another App", "a function with another table",
		"a function with the table of another Region", "a key of another name", "a mapping that is off", "a replica in another Region",
		"a role of another account", "a route that treats all callers as one", "a schedule of another Region's worker", "a schedule that is off",
		"a start at the end", "a stream of keys", "a table whose key is gone", "a worker that may loop", "alarms that nobody hears",
		"an index of one's own", "an index of two write units", "an index that is being built", "clients that retry for three days",
		"dead letters for four days", "no bisecting", "no concurrency", "no destination for failures", "no protection", "no recovery",
		"no report of a queue", "no report of the stream", "one receive", "retries without an end", "six hours of age", "two write units at most",
	},
	{
		"TTL on another attribute", "a bus of another account", "a clock that is seconds behind AWS", "a filter on tickets", "a filter without renewals",
		"a function of ten minutes", "a function that is gone", "a function with the table of another account", "a key that is a number",
		"a queue that fails", "a role for another queue", "a stream that fails", "a table without its encryption key", "alarms of another App",
		"an index with another key", "an operator who may not write", "another layout", "both schedules for one task", "five receives of a ticket",
		"five write units", "messages for less than the tries", "milliseconds in exp_s", "one worker at a time", "replicas with strong consistency",
		"no retries",
	},
	{
		"a bus that is gone", "a filter without stuck", "a function that nobody completes", "a policy with a list of APIs", "a role of the worker",
		"a sort key", "a state machine that is being deleted", "a visibility of one timeout", "an index without its attributes",
		"no alarm on WaitingStuck", "no dead letters", "no schedule of the sweep", "three readers", "tickets for ten days",
	},
	{
		"a grace of a day", "a role that anybody of the account may assume", "a sink that is gone",
		"a table that is named by its ARN, and a function with another", "an API shorter than its function",
		"filters whose key is gone", "tickets that nobody reads",
	},
}

// Each mistake is found, by its check and by no other.
func TestPlantedMistakes(t *testing.T) { t.Parallel(); synctest.Test(t, plantedMistakes) }

func plantedMistakes(t *testing.T) {
	planted, alone := make(map[string]bool), maps.Clone(plants)
	for _, names := range together {
		for _, name := range names {
			delete(alone, name)
		}
	}
	deployments := slices.Clone(together)
	for name := range alone {
		deployments = append(deployments, []string{name})
	}
	for _, names := range deployments {
		w, opt := world(), options()
		var want, got []string
		for _, name := range names {
			plants[name].do(w, &opt)
			want = append(want, plants[name].find...)
		}
		for _, f := range examine(t, w, opt).Findings {
			got = append(got, strings.Join([]string{string(f.Severity), f.Check, f.Where, f.What}, ": "))
			planted[f.Check] = true
			if f.Causes == "" || f.Mend == "" {
				t.Errorf("the finding %+v is not complete", f)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", names, diff)
		}
	}
	for _, c := range doctor.All() {
		if !planted[c.ID] {
			t.Errorf("no mistake is planted for %s", c.ID)
		}
	}
}

// What AWS doesn't answer is not checked, and is never good.
func TestNoRightsIsNotGood(t *testing.T) { t.Parallel(); synctest.Test(t, noRights) }

func noRights(t *testing.T) {
	sources := map[doctor.Source]string{
		doctor.DescribeTable: "DynamoDB.DescribeTable", doctor.DescribeTTL: "DynamoDB.DescribeTimeToLive", doctor.DescribeBackup: "DynamoDB.DescribeContinuousBackups",
		doctor.ScanTable: "DynamoDB.Scan", doctor.ServerClock: "DynamoDB.DescribeTable", doctor.Functions: "Lambda.ListFunctions",
		doctor.Mappings: "Lambda.ListEventSourceMappings", doctor.Concurrency: "Lambda.GetFunctionConcurrency", doctor.Recursion: "Lambda.GetFunctionRecursionConfig", doctor.EventInvokes: "Lambda.GetFunctionEventInvokeConfig", doctor.Policies: "Lambda.GetPolicy",
		doctor.Queues: "SQS.GetQueueAttributes", doctor.Buses: "EventBridge.DescribeEventBus", doctor.Machines: "StepFunctions.DescribeStateMachine",
		doctor.ScheduleRole: "IAM.GetRole", doctor.Simulation: "IAM.SimulatePrincipalPolicy", doctor.Schedules: "Scheduler.GetSchedule", doctor.Gateways: "APIGateway.", doctor.Alarms: "CloudWatch.DescribeAlarms", doctor.Metrics: "CloudWatch.ListMetrics",
	}
	asked := make(map[doctor.Source]bool)
	for source, op := range sources {
		w, opt := world(), options()
		w.Refused[op] = "AccessDeniedException"
		opt.As = ""
		r := examine(t, w, opt)
		for _, c := range doctor.All() {
			if !slices.Contains(c.Needs, source) {
				continue
			}
			asked[source] = true
			if slices.Contains(r.Good, c.ID) || !slices.ContainsFunc(r.NotChecked, func(u doctor.Unchecked) bool { return u.Check == c.ID && u.Why != "" }) {
				t.Errorf("without %s, %s is good, or not listed: %+v", op, c.ID, r.NotChecked)
			}
		}
		if len(r.Findings) != 0 {
			t.Errorf("without %s: %+v", op, r.Findings)
		}
	}
	for _, c := range doctor.All() {
		for _, s := range c.Needs {
			if !asked[s] {
				t.Errorf("%s is not refused by any test", s)
			}
		}
	}
}

// An answer that can't be read, as an emulator's, is not checked: the rest is.
func TestUnreadableAnswer(t *testing.T) { t.Parallel(); synctest.Test(t, unreadableAnswer) }

func unreadableAnswer(t *testing.T) {
	w := world()
	w.Table["DeletionProtectionEnabled"] = "true"
	r := examine(t, w, options())
	if len(r.Findings) != 0 || len(r.Good) < 15 || r.Unanswered() == 0 {
		t.Errorf("good %v, %+v, not checked %+v", r.Good, r.Findings, r.NotChecked)
	}
}

func TestNothingToLookAt(t *testing.T) {
	t.Parallel()
	for want, opt := range map[string]doctor.Options{
		"there is no table other in this account and region": {Table: "other"},
		"which table?": {},
		"the stack broken can't be read: ValidationError: Stack with id nothing does not exist":  {Stack: "broken"},
		"the stack two has 2 tables with the logical name Table (records, records): which one?":  {Stack: "two"},
		"the table records can't be read: ThrottlingException: not for tests":                    {Table: "records", As: "worker"},
		"the stack nothing can't be read: ValidationError: Stack with id nothing does not exist": {Stack: "nothing"},
	} {
		w := world()
		w.Stacks["broken"] = []object{{"LogicalResourceId": "Samekey", "PhysicalResourceId": "nothing", "ResourceType": "AWS::CloudFormation::Stack"}}
		w.Stacks["two"] = slices.Repeat([]object{{"LogicalResourceId": "Table", "PhysicalResourceId": "records", "ResourceType": "AWS::DynamoDB::Table"}}, 2)
		if opt.As != "" {
			w.Refused["DynamoDB.DescribeTable"] = "ThrottlingException"
		}
		_, err := doctor.Gather(context.Background(), doctor.NewClients(config(w), nil), opt)
		if err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", opt, err, want)
		}
	}
}

// A worker that rules of EventBridge may start has schedules that are not looked at.
func TestRulesMayStartTheWorker(t *testing.T) {
	t.Parallel()
	w := world()
	w.Schedules = nil
	w.Policies["worker"] = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"lambda:InvokeFunction"}]}`
	r := examine(t, w, options())
	if len(r.Findings) != 0 || len(r.NotChecked) != 1 || r.NotChecked[0].Check != "schedules" || r.NotChecked[0].Unanswered {
		t.Errorf("%+v, not checked %+v", r.Findings, r.NotChecked)
	}
}

// verdict is what a report says, beside what is good.
func verdict(r *doctor.Report) (all []string) {
	checks := make(map[string]doctor.Check)
	for _, c := range doctor.All() {
		checks[c.ID] = c
	}
	for _, f := range r.Findings {
		line := strings.Join([]string{string(f.Severity), f.Check, f.Where, f.What}, ": ")
		if f.Causes != checks[f.Check].Causes {
			line += ": " + f.Causes
		}
		if slices.Contains(r.Good, f.Check) {
			line += ", and good"
		}
		all = append(all, line)
	}
	unchecked := make(map[string][]string)
	for _, u := range r.NotChecked {
		why := u.Why
		if u.Unanswered {
			why += " (unanswered)"
		}
		unchecked[why] = append(unchecked[why], u.Check)
	}
	for _, why := range slices.Sorted(maps.Keys(unchecked)) {
		all = append(all, "not checked: "+strings.Join(unchecked[why], " ")+": "+why)
	}
	return all
}

// noFunctionChecked are the checks that need functions.
const noFunctionChecked = "not checked: stream-reader stream-readers stream-filters mapping-result stream-retries stream-bisect stream-on-failure stream-start report-failures queue-missing bus-miss" +
	"ing machine-standard tickets-reader tickets-fifo tickets-wait tickets-filters queue-visibility queue-redrive queue-receives dead-letters-kept queue-kept env-table env-app log-level completes completes-all worker-timeout gateway-timeout gateway-bytes lease asynchronous concurrency recursion retention-queue provider-keys stream-age alarms alarms-heard hooks schedules schedule-role: "

// judged are deployments at the limits of the checks, or with something that can't be checked.
var judged = map[string]plant{
	"limits": {func(w *doctortest.World, o *doctor.Options) {
		w.Function("orders")["Timeout"], w.Integrations["httpapi001"][0]["timeoutInMillis"] = 300, 300000
		method(w)["timeoutInMillis"] = 300000
		w.Function("worker")["Timeout"] = 301
		w.Concurrency = map[string]int{"worker": 3, "orders": 1}
		w.Now = w.Now.Add(6 * time.Second)
		w.Queues["tickets"]["VisibilityTimeout"], w.Queues["tickets"]["MessageRetentionPeriod"] = "1806", "950400"
		w.Queues["receipts"]["MessageRetentionPeriod"], w.Queues["receipts"]["RedrivePolicy"] = "540", redrive("receipts-dead", "3")
		w.Queues["receipts-dead"]["MessageRetentionPeriod"] = "540"
		w.Mapping("stream")["MaximumRetryAttempts"], w.Mapping("stream")["MaximumRecordAgeInSeconds"] = 5, -1
		o.ClientRetries, o.ProviderRemembers = 24*time.Hour, time.Hour+25*time.Minute+time.Second
		w.Table["OnDemandThroughput"] = object{"MaxWriteRequestUnits": 6}
		w.Table["TableStatus"], w.TTL["TimeToLiveStatus"] = "UPDATING", "ENABLING"
	}, nil},
	"beyond the provider's limit": {func(w *doctortest.World, o *doctor.Options) {
		delete(w.Env("worker"), "SAMEKEY_GRACE")
		o.ProviderRemembers = time.Hour + 20*time.Minute + 15*time.Second
	}, on("warning: provider-keys: function worker: an abandoned request is taken up 20m15s after its claim, and the provider remembers a key for 1h20m15s")},
	"a large table": {func(w *doctortest.World, _ *doctor.Options) {
		w.Items[0]["exp_s"].(object)["N"] = w.Items[0]["exp_s"].(object)["N"].(string) + "000"
		w.Items = append(w.Items, slices.Repeat(w.Items[1:2], 300)...)
	}, on("error: ttl-unit: table records: exp_s of 1 of 200 records is no time in seconds, as 946767601000")},
	"an open record's expiry is no retention": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Items[2], "keep")
		delete(w.Items[2], "req")
		w.Items[2]["exp_s"] = object{"N": strconv.FormatInt(w.Now.Unix(), 10)}
	}, nil},
	"the shortest retention": {func(w *doctortest.World, _ *doctor.Options) {
		w.Items = append(w.Items, w.Record("8", "orders", "done", 61*time.Minute), w.Record("9", "orders", "done", 48*time.Hour))
	}, on("error: retention-clients: function orders: its answers are kept for 1h1m, and clients retry for 12h")},
	"a consumer that forgets dead letters": {func(w *doctortest.World, _ *doctor.Options) {
		w.Items[1] = w.Record("2", "receipts", "done", 14*24*time.Hour)
	}, on("warning: retention-queue: function receipts: it remembers a message for 336h, and queue receipts may deliver it again for 672h: a message that is redriven from the dead letters late is worked on twice")},
	"a sample of mistaken times": {func(w *doctortest.World, _ *doctor.Options) {
		w.Items = w.Items[:1]
		w.Items[0]["exp_s"].(object)["N"] = w.Items[0]["exp_s"].(object)["N"].(string) + "000"
	}, on(
		"error: ttl-unit: table records: exp_s of 1 of 1 records is no time in seconds, as 946767601000",
		"not checked: retention-queue: no finished record of a function that reads a queue is in the sample",
		"not checked: retention-clients: the sample has no finished record to measure the retention by",
	)},
	"a sample of one function": {func(w *doctortest.World, _ *doctor.Options) { w.Items = w.Items[:1] }, on("not checked: retention-queue: no finished record of a function that reads a queue is in the sample")},
	"no items": {func(w *doctortest.World, _ *doctor.Options) { w.Items = nil }, on(
		"not checked: retention-queue: no finished record of a function that reads a queue is in the sample",
		"not checked: retention-clients: the sample has no finished record to measure the retention by",
		"not checked: ttl-unit layout: the sample has no record",
	)},
	"items that are no requests of anybody": {func(w *doctortest.World, _ *doctor.Options) {
		stuck, clients := w.Record("7", "refunds", "stuck", 0), w.Record("8", "refunds", "open", 0)
		delete(clients, "req")
		w.Items = append(w.Items, stuck, clients, w.Record("9", "", "open", 0), object{"pk": object{"S": "place"}})
	}, nil},
	"a function that nobody completes, twice": {func(w *doctortest.World, _ *doctor.Options) {
		w.Items = append(w.Items, w.Record("8", "refunds", "open", 0), w.Record("9", "refunds", "open", 0))
	}, on("error: completes-all: function worker: SAMEKEY_FUNCTIONS doesn't have refunds, which has resumable requests")},
	"no worker": {func(w *doctortest.World, _ *doctor.Options) { delete(w.Env("worker"), "SAMEKEY_TICKETS_URL") }, on(
		"not checked: queue-missing bus-missing machine-standard tickets-reader tickets-fifo tickets-filters env-app completes completes-all worker-timeout recursion provider-keys alarms alarms-heard hooks schedules schedule-role: no function has the variable SAMEKEY_TICKETS_URL, so there is no ready worker to look at",
		"not checked: tickets-wait: the queue of tickets was not found",
	)},
	"no mappings": {func(w *doctortest.World, _ *doctor.Options) { w.Mappings = nil }, on(
		"error: stream-reader: table records: no function reads its stream",
		"error: tickets-reader: queue tickets: worker doesn't read it",
		"not checked: retention-queue: no finished record of a function that reads a queue is in the sample",
		"not checked: queue-visibility queue-redrive queue-receives dead-letters-kept queue-kept: no function reads a queue",
		"not checked: stream-readers stream-filters stream-retries stream-bisect stream-on-failure stream-start stream-age: no function reads the stream",
		"not checked: report-failures: no function reads the stream or a queue",
	)},
	"no policies": {func(w *doctortest.World, _ *doctor.Options) { w.Policies = nil }, on("not checked: gateway-timeout: no integration of an API with the functions was found")},
	"nothing is said": {func(_ *doctortest.World, o *doctor.Options) { o.ClientRetries, o.As = 0, "" }, on(
		"not checked: rights: it is not known as whom the caller looks: say so by --as function, worker or operator",
		"not checked: retention-clients: it is not known for how long clients retry: say so by --client-retries",
	)},
	"the table alone": {func(_ *doctortest.World, o *doctor.Options) { o.TableOnly = "it is local" }, on(noFunctionChecked + "it is local (unanswered)")},
	"no functions":    {func(w *doctortest.World, _ *doctor.Options) { w.Functions, w.Mappings = nil, nil }, on(noFunctionChecked + "no function was found: none has the variable IDEM_TABLE=records; name the stack or the functions (unanswered)")},
	"a stream that is off": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["StreamSpecification"].(object)["StreamEnabled"] = false
	}, on(
		"error: stream-view: table records: it has no stream",
		"not checked: stream-readers stream-filters stream-retries stream-bisect stream-on-failure stream-start stream-age: no function reads the stream",
		"not checked: stream-reader: the table has no stream",
	)},
	"a queue of tickets that is gone": {func(w *doctortest.World, _ *doctor.Options) { delete(w.Queues, "tickets") }, on(
		"error: queue-missing: queue tickets: it doesn't exist",
		"error: queue-missing: queue https://sqs.us-east-1.amazonaws.com/123456789012/tickets: it doesn't exist",
		"not checked: tickets-reader tickets-wait: the queue of tickets was not found",
		"not checked: schedule-role: the queue of tickets was not found (unanswered)",
	)},
	"queues that are gone": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Queues, "receipts")
		delete(w.Queues, "tickets-dead")
	}, on(
		"error: queue-missing: queue receipts: it doesn't exist",
		"error: queue-missing: queue tickets-dead: it doesn't exist",
		"error: queue-missing: queue https://sqs.us-east-1.amazonaws.com/123456789012/receipts: it doesn't exist",
		"error: queue-redrive: queue tickets: its queue of dead letters doesn't exist: arn:aws:sqs:us-east-1:123456789012:tickets-dead",
		"not checked: retention-queue: no finished record of a function that reads a queue is in the sample",
	)},
	"policies that are not understood": {func(w *doctortest.World, _ *doctor.Options) {
		w.Queues["receipts"]["RedrivePolicy"] = strings.Replace(redrive("receipts-dead", ""), `""`, `[]`, 1)
		w.Queues["tickets"]["RedrivePolicy"] = `{"deadLetterTargetArn":5,"maxReceiveCount":5}`
	}, on(
		"error: queue-redrive: queue receipts: it has no redrive policy",
		"error: queue-redrive: queue tickets: it has no redrive policy",
	)},
	"another policy that is not understood": {func(w *doctortest.World, _ *doctor.Options) {
		w.Queues["receipts"]["RedrivePolicy"], w.Queues["receipts"]["MessageRetentionPeriod"] = `{"deadLetterTargetArn":5,"maxReceiveCount":1}`, "60"
		w.Queues["tickets"]["RedrivePolicy"] = "{}"
	}, on(
		"error: queue-redrive: queue receipts: it has no redrive policy",
		"error: queue-redrive: queue tickets: it has no redrive policy",
	)},
	"dead letters somewhere": {func(w *doctortest.World, _ *doctor.Options) {
		w.Queues["receipts"]["RedrivePolicy"] = `{"deadLetterTargetArn":"somewhere"}`
		w.Queues["tickets"]["RedrivePolicy"] = `{"deadLetterTargetArn":"somewhere"}`
		w.Queues["tickets"]["VisibilityTimeout"] = "1300"
	}, nil},
	"receives for longer than tickets are kept": {func(w *doctortest.World, _ *doctor.Options) { w.Queues["tickets"]["VisibilityTimeout"] = "1300" }, nil},
	"another function's tickets": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("tickets")["FunctionArn"] = w.Function("receipts")["FunctionArn"]
		w.Mapping("tickets")["FilterCriteria"] = object{"Filters": []any{object{"Pattern": "{}"}}}
	}, on("error: tickets-reader: queue tickets: worker doesn't read it")},
	"the worker reads another queue": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("receipts")["FunctionArn"] = w.Function("worker")["FunctionArn"]
		w.Mapping("receipts")["FilterCriteria"] = object{"Filters": []any{object{"Pattern": "{}"}}}
		w.Queues["receipts"]["VisibilityTimeout"] = "720"
		w.Items = append(w.Items, w.Record("9", "worker", "done", time.Hour))
	}, on("not checked: retention-queue: no finished record of a function that reads a queue is in the sample")},
	"mappings that are off": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("tickets")["State"], w.Mapping("stream")["State"] = "Disabled", "Disabling"
		w.Mapping("tickets")["FilterCriteriaError"], w.Mapping("stream")["LastProcessingResult"] = object{"ErrorCode": "x", "Message": "y"}, "PROBLEM: x"
	}, on(
		"error: stream-reader: mapping of stream to worker: it is Disabling (UUID stream)",
		"error: tickets-reader: mapping of queue tickets to worker: it is Disabled",
		"error: tickets-filters: mapping of queue tickets to worker: it has a filter",
	)},
	"three readers, and one is off": {func(w *doctortest.World, _ *doctor.Options) {
		readers(w, "second", "third")
		w.Mapping("third")["State"] = "Disabled"
	}, on("error: stream-reader: mapping of stream to worker: it is Disabled (UUID third)")},
	"drain and completer apart": {func(w *doctortest.World, _ *doctor.Options) {
		readers(w, "second")
		c := w.Mapping("stream")["FilterCriteria"].(object)
		all := c["Filters"].([]any)
		w.Mapping("stream")["FilterCriteria"], w.Mapping("second")["FilterCriteria"] = object{"Filters": all[:1]}, object{"Filters": all[1:]}
	}, nil},
	"no filters": {func(w *doctortest.World, _ *doctor.Options) { delete(w.Mapping("stream"), "FilterCriteria") }, nil},
	"filters that are not understood": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("stream")["FilterCriteria"] = object{"Filters": []any{object{"Pattern": "{"}}}
	}, on("not checked: stream-filters: the filters of worker are not understood: filter {: not JSON: unexpected EOF")},
	"filters of no namespace": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_NAMESPACES"] = "rides,shop"
		w.Mapping("stream")["FilterCriteria"] = object{"Filters": []any{object{"Pattern": `{"dynamodb":{"NewImage":{"pk":{"S":[{"prefix":"v1#taxi#"}]}}}}`}}}
	}, on("error: stream-filters: mapping of stream to worker: its filters leave out an open record, an open record that is renewed, a finished record, a stuck record, an open record that was removed, a stuck record that was removed, a finished record with jobs that was removed")},
	"a stream mapping of bare defaults": {func(w *doctortest.World, _ *doctor.Options) {
		m := w.Mapping("stream")
		for _, name := range []string{"MaximumRecordAgeInSeconds", "BisectBatchOnFunctionError", "StartingPosition"} {
			delete(m, name)
		}
		m["DestinationConfig"] = object{"OnFailure": object{}}
	}, on(
		"warning: stream-bisect: mapping of stream to worker: BisectBatchOnFunctionError is off",
		"warning: stream-on-failure: mapping of stream to worker: it has no on-failure destination",
	)},
	"no age": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("stream")["MaximumRecordAgeInSeconds"], w.Mapping("stream")["DestinationConfig"] = 0, object{}
	}, on(
		"warning: stream-on-failure: mapping of stream to worker: it has no on-failure destination",
		"warning: stream-age: mapping of stream to worker: it gives up records that are 0 s old",
	)},
	"variables": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Env("orders"), "IDEM_TABLE")
		delete(w.Env("orders"), "SAMEKEY_APP")
		delete(w.Env("worker"), "SAMEKEY_APP")
		w.Env("receipts")["SAMEKEY_APP"] = "orders"
		w.Env("worker")["SAMEKEY_FUNCTIONS"] = "orders,\n\treceipts orders:$LATEST"
		w.Function("orders")["LoggingConfig"] = object{"LogFormat": "Text", "ApplicationLogLevel": "ERROR"}
		w.Function("receipts")["LoggingConfig"] = object{"LogFormat": "JSON", "ApplicationLogLevel": "FATAL"}
		w.Env("worker")["SAMEKEY_SINKS"] = w.Env("worker")["SAMEKEY_SINKS"].(string) + ",again=events:audit,ship2=states:arn:aws:states:us-east-1:123456789012:stateMachine:ship,gone=events:gone,gone2=events:gone"
	}, on(
		"error: bus-missing: bus gone: it doesn't exist",
		"error: log-level: function receipts: its ApplicationLogLevel is FATAL",
	)},
	"two integrations with an API": {func(w *doctortest.World, _ *doctor.Options) {
		w.Function("orders")["Timeout"], w.BinaryMediaTypes = 60, nil
		w.Policies["orders"] = strings.NewReplacer("httpapi001", "restapi001", "restapi001", "httpapi001", `"Condition":{`,
			`"Condition":{"Bool":{"aws:x":"true"},"ArnEquals":{"AWS:SourceArn":"arn:aws:s3:us-east-1::bucket/x"},`).Replace(w.Policies["orders"])
		other := clone(w.Integrations["httpapi001"][0])
		other["integrationUri"] = strings.Replace(other["integrationUri"].(string), ":orders/", ":receipts/", 1)
		other["timeoutInMillis"] = 1000
		w.Integrations["httpapi001"] = append(w.Integrations["httpapi001"], clone(w.Integrations["httpapi001"][0]), other, object{"integrationUri": "https://example.com/arn:aws:lambda:us-east-1:123456789012:function:orders"})
		delete(w.Integrations["httpapi001"][0], "timeoutInMillis")
		w.Integrations["httpapi001"][0]["integrationUri"] = "arn:aws:lambda:us-east-1:123456789012:function:orders"
		w.Integrations["httpapi001"] = w.Integrations["httpapi001"][:3]
		method(w)["timeoutInMillis"] = 0
		resource := clone(w.Resources["restapi001"][0])
		resource["resourceMethods"].(object)["GET"] = object{"httpMethod": "GET"}
		w.Resources["restapi001"] = append(w.Resources["restapi001"], resource)
	}, on(
		"warning: gateway-timeout: function orders: its Timeout is 1m0s, and API httpapi001 waits for 30s",
		"warning: gateway-timeout: function orders: its Timeout is 1m0s, and API restapi001 waits for 29s",
		"note: gateway-bytes: function orders: the REST API restapi001 in front of it has no binary media types",
	)},
	"alarms of another kind": {func(w *doctortest.World, _ *doctor.Options) {
		for _, a := range w.Alarms {
			switch a["MetricName"] {
			case "Waiting":
				a["Namespace"] = "Shop"
			case "WaitingStuck":
				a["Dimensions"] = []any{object{"Name": "Stage", "Value": "orders"}}
			case "WaitingParked":
				a["ActionsEnabled"] = false
			}
		}
	}, on(
		"warning: alarms: alarms of App orders: there is none on Waiting, WaitingStuck",
		"note: alarms-heard: alarms of App orders: nobody hears those on WaitingParked",
	)},
	"an answer without a date": {func(w *doctortest.World, _ *doctor.Options) { w.Now = time.Time{} }, on("not checked: clock: the answers have no Date (unanswered)")},
	"a stack with another table": {func(w *doctortest.World, o *doctor.Options) {
		o.Stack, o.Table = "orders", ""
		w.Stacks["orders"] = append(w.Stacks["orders"], object{"LogicalResourceId": "Riders", "PhysicalResourceId": "riders", "ResourceType": "AWS::DynamoDB::Table"})
	}, nil},
	"a function with its alias": {func(w *doctortest.World, o *doctor.Options) {
		alias(w, "orders")
		w.Function("orders")["LoggingConfig"] = object{"LogFormat": "JSON", "ApplicationLogLevel": "ERROR"} // of $LATEST
		w.Env("worker")["SAMEKEY_FUNCTIONS"] = "orders:live"
		o.Functions = []string{"orders:live", "receipts", "worker"}
	}, nil},
	"functions that nothing uses": {func(w *doctortest.World, _ *doctor.Options) {
		other := w.Function("other")
		w.Aliases, w.Versions = map[string][]string{"other": {"live"}}, map[string]object{"other:live": clone(other)}
		other["Environment"] = object{"Variables": object{"IDEM_TABLE": "arn:aws:dynamodb:eu-west-1:123456789012:table/records"}} // of $LATEST
		w.Versions["other:live"]["Environment"] = object{"Variables": object{"IDEM_TABLE": "records"}}
	}, nil},
	"a function of another table": {func(w *doctortest.World, _ *doctor.Options) {
		w.Function("other")["Environment"] = object{"Variables": object{"IDEM_TABLE": "decords"}}
	}, nil},
	"no index tells how it is": {func(w *doctortest.World, _ *doctor.Options) { delete(index(w), "IndexStatus") }, nil},
	"no projection":            {func(w *doctortest.World, _ *doctor.Options) { delete(index(w), "Projection") }, on("error: table-indexes: table records: the index waiting holds nothing, and should hold INCLUDE about created_ms exp_s fn hn id last_err route run_ms tries wait_in")},
	"provisioned units": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["BillingModeSummary"] = object{"BillingMode": "PROVISIONED"}
		w.Table["ProvisionedThroughput"], w.Table["OnDemandThroughput"] = object{"WriteCapacityUnits": 1}, object{"MaxWriteRequestUnits": 2}
	}, on("warning: table-capacity: table records: it may write 1 units a second")},
	"no answer about TTL, and a key that is there": {func(w *doctortest.World, _ *doctor.Options) {
		w.TTL, w.Backups = nil, object{}
		w.Table["SSEDescription"] = object{"Status": "ENABLED", "SSEType": "KMS"}
	}, on(
		"warning: ttl-off: table records: TTL is off",
		"warning: recovery: table records: point-in-time recovery is off",
	)},
	"TTL was on another attribute": {func(w *doctortest.World, _ *doctor.Options) {
		w.TTL = object{"TimeToLiveStatus": "DISABLED", "AttributeName": "expires"}
	}, on("warning: ttl-off: table records: TTL is off")},
	"a write that DynamoDB throttles": {func(w *doctortest.World, _ *doctor.Options) {
		w.Refused["DynamoDB.UpdateItem"] = "ThrottlingException"
	}, on("not checked: rights: ThrottlingException: not for tests")},
	"a stack whose functions can't be read": {func(w *doctortest.World, o *doctor.Options) {
		o.Stack, w.Refused["Lambda.GetFunctionConfiguration"] = "orders", "AccessDenied"
	}, on(noFunctionChecked + "orders: AccessDenied: not for tests (unanswered)")},
	"aliases that can't be listed": {func(w *doctortest.World, _ *doctor.Options) {
		w.Refused["Lambda.ListAliases"] = "UnauthorizedOperation"
	}, on(noFunctionChecked + "arn:aws:lambda:us-east-1:123456789012:function:orders: its aliases: UnauthorizedOperation: not for tests (unanswered)")},
	"variables whose key is gone": {func(w *doctortest.World, o *doctor.Options) {
		o.Stack = "orders"
		w.Function("receipts")["Environment"] = object{"Error": object{"ErrorCode": "AccessDeniedException", "Message": "no key"}}
	}, on(noFunctionChecked + "receipts: its variables: no key (unanswered)")},
	"a policy that is not understood": {func(w *doctortest.World, _ *doctor.Options) { w.Policies["orders"] = "{" }, on("not checked: gateway-timeout gateway-bytes asynchronous schedules: orders: its policy is not understood: unexpected end of JSON input (unanswered)")},
	"no REST API to be read": {func(w *doctortest.World, _ *doctor.Options) {
		w.Refused["APIGateway.GetRestApi"] = "AccessDeniedException"
	}, on("not checked: gateway-timeout gateway-bytes: restapi001: AccessDeniedException: not for tests (unanswered)")},
	"no resources to be read": {func(w *doctortest.World, _ *doctor.Options) {
		w.Refused["APIGateway.GetResources"] = "AccessDeniedException"
	}, on("not checked: gateway-timeout gateway-bytes: restapi001: AccessDeniedException: not for tests (unanswered)")},
	"queues that can't be named":           {func(w *doctortest.World, _ *doctor.Options) { w.Refused["SQS.GetQueueUrl"] = "AccessDeniedException" }, on("not checked: queue-missing tickets-reader tickets-fifo tickets-wait tickets-filters queue-visibility queue-redrive queue-receives dead-letters-kept queue-kept retention-queue: arn:aws:sqs:us-east-1:123456789012:receipts: AccessDeniedException: not for tests (unanswered)")},
	"a role whose trust is not understood": {func(w *doctortest.World, _ *doctor.Options) { w.Roles["later"].Trust = "{" }, on("not checked: schedule-role: role later: who may assume it is not understood: unexpected end of JSON input (unanswered)")},
	"a role of everything": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Trust = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"*"},{"Effect":"Deny","Principal":{"Service":"scheduler.amazonaws.com"},"Action":"*"},{"Effect":"Allow","Principal":{"Service":"scheduler.amazonaws.com"},"Action":"sts:TagSession"}]}`
	}, on("error: schedule-role: role arn:aws:iam::123456789012:role/samekey/later: scheduler.amazonaws.com may not assume it")},
	"a role that may be assumed for everything": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Trust = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"scheduler.amazonaws.com"},"Action":"*"}]}`
	}, nil},
	"no buses and machines to be read": {func(w *doctortest.World, _ *doctor.Options) {
		w.Refused["EventBridge.DescribeEventBus"], w.Refused["StepFunctions.DescribeStateMachine"] = "ThrottlingException", "ThrottlingException"
	}, on(
		"not checked: bus-missing: bus audit: ThrottlingException: not for tests (unanswered)",
		"not checked: machine-standard: state machine arn:aws:states:us-east-1:123456789012:stateMachine:ship: ThrottlingException: not for tests (unanswered)",
	)},
}

// Each deployment is judged as it is at the limit, and what can't be checked says why.
func TestJudgedDeployments(t *testing.T) { t.Parallel(); synctest.Test(t, judgedDeployments) }

func judgedDeployments(t *testing.T) {
	for name, p := range judged {
		w, opt := world(), options()
		p.do(w, &opt)
		got := verdict(examine(t, w, opt))
		if diff := cmp.Diff(p.find, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What a role needs, and is refused, is a finding.
func TestRights(t *testing.T) { t.Parallel(); synctest.Test(t, rightsOfRoles) }

func rightsOfRoles(t *testing.T) {
	want := map[string][]string{"function": {"GetItem", "PutItem", "UpdateItem"}, "worker": {"GetItem", "UpdateItem", "Scan"}, "operator": {"GetItem", "UpdateItem", "Query", "Scan"}}
	for _, role := range doctor.Roles() {
		w, opt := world(), options()
		opt.As = role
		for _, op := range []string{"GetItem", "PutItem", "UpdateItem", "Query", "Scan"} {
			w.Refused["DynamoDB."+op] = "AccessDeniedException"
		}
		var got []string
		for _, f := range examine(t, w, opt).Findings {
			op, _, _ := strings.Cut(strings.TrimPrefix(f.What, "dynamodb:"), " ")
			got = append(got, op)
		}
		if diff := cmp.Diff(want[role], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}

// answers are clients whose calls are answered by an error, or by nothing.
type (
	noFunctions struct {
		doctor.Lambda
		err error
	}
	noWrites struct {
		doctor.DynamoDB
		err error
	}
	noRole struct{ doctor.IAM }
)

func (a noFunctions) GetFunctionConfiguration(ctx context.Context, in *lambda.GetFunctionConfigurationInput, opts ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error) {
	if *in.FunctionName == "refunds" {
		return nil, a.err
	}
	return a.Lambda.GetFunctionConfiguration(ctx, in, opts...)
}

func (a noWrites) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, a.err
}

func (noRole) GetRole(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error) {
	return &iam.GetRoleOutput{}, nil
}

// The services have several names for an error, with a namespace or without. An emulator's answer
// may lack the role.
func TestAnswersOfOthers(t *testing.T) { t.Parallel(); synctest.Test(t, answersOfOthers) }

func answersOfOthers(t *testing.T) {
	verdictOf := func(change func(*doctor.Clients)) string {
		w := world()
		w.Env("worker")["SAMEKEY_FUNCTIONS"] = "orders,refunds"
		c := doctor.NewClients(config(w), nil)
		c.Lambda = noFunctions{c.Lambda, &smithy.GenericAPIError{Code: "NotFoundException"}}
		change(&c)
		f, err := doctor.Gather(t.Context(), c, options())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(verdict(doctor.Examine(f)), "\n")
	}
	const gone = "error: completes: function worker: SAMEKEY_FUNCTIONS has refunds, which doesn't exist"
	for _, code := range []string{
		"ResourceNotFoundException", "com.amazonaws#NotFoundException", "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue",
		"StateMachineDoesNotExist", "InvalidArn", "NoSuchEntity",
	} {
		if got := verdictOf(func(c *doctor.Clients) { c.Lambda = noFunctions{c.Lambda, &smithy.GenericAPIError{Code: code}} }); got != gone {
			t.Errorf("%s: %s", code, got)
		}
	}
	for _, code := range []string{"AccessDeniedException", "AccessDenied", "UnauthorizedOperation"} {
		got := verdictOf(func(c *doctor.Clients) {
			c.DynamoDB = noWrites{c.DynamoDB, &smithy.GenericAPIError{Code: code, Message: "no"}}
		})
		if want := gone + "\nerror: rights: the caller's credentials, as operator: dynamodb:UpdateItem is refused (" + code + ": no)"; got != want {
			t.Errorf("%s: %s", code, got)
		}
	}
	want := gone + "\nnot checked: schedule-role: role later: the answer has no role (unanswered)"
	if got := verdictOf(func(c *doctor.Clients) { c.IAM = noRole{c.IAM} }); got != want {
		t.Errorf("no role: %s", got)
	}
}

// ended is an account in which the examination's time ends with a call.
type ended struct {
	*doctortest.World
	at  string // of the call's target or path
	end context.CancelFunc
}

func (e ended) Do(req *http.Request) (*http.Response, error) {
	if strings.Contains(req.Header.Get("X-Amz-Target")+req.URL.Path, e.at) {
		e.end()
	}
	return e.World.Do(req)
}

// An examination that was ended has no facts that could be judged.
func TestEndedExamination(t *testing.T) {
	t.Parallel()
	for at, opt := range map[string]doctor.Options{"Query": {Table: "records", TableOnly: "it is local"}, "GraniteService": {Table: "records"}} {
		ctx, end := context.WithCancel(t.Context())
		cfg := config(world())
		cfg.HTTPClient = ended{world(), at, end}
		if _, err := doctor.Gather(ctx, doctor.NewClients(cfg, nil), opt); !errors.Is(err, context.Canceled) {
			t.Errorf("ended at %s: %v", at, err)
		}
	}
}

// The page lists the permission of each call that the command makes.
func TestPageListsThePermissions(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../../docs/operate/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(raw), "\n## Permissions\n")
	page, _, _ = strings.Cut(page, "\n## ")
	for service := range reflect.TypeFor[doctor.Clients]().Fields() {
		if strings.HasSuffix(service.Name, "APIs") {
			continue // of API Gateway, whose action is apigateway:GET
		}
		for call := range service.Type.Methods() {
			if !strings.Contains(page, "`"+call.Name+"`") && !strings.Contains(page, ":"+call.Name+"`") {
				t.Errorf("%s is not listed", call.Name)
			}
		}
	}
}
