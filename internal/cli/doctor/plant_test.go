package doctor_test

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/samekey/samekey/internal/cli/doctor"
	"github.com/samekey/samekey/internal/cli/doctor/doctortest"
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
		"as a function":        func(o *doctor.Options) { o.As = "function" },
		"as the worker":        func(o *doctor.Options) { o.As = "worker" },
	} {
		opt := options()
		change(&opt)
		r := examine(t, world(), opt)
		if len(r.Findings) != 0 || len(r.NotChecked) != 0 || len(r.Good) != len(doctor.All()) || r.Table != "records" {
			t.Errorf("%s: %+v, not checked %+v", name, r.Findings, r.NotChecked)
		}
	}
}

// plant is a mistake, and the checks that have to find it.
type plant struct {
	do   func(*doctortest.World, *doctor.Options)
	find []string
}

func on(checks ...string) []string { return checks }

var plants = map[string]plant{
	"a sort key": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["KeySchema"] = append(w.Table["KeySchema"].([]any), object{"AttributeName": "sk", "KeyType": "RANGE"})
	}, on("table-key")},
	"a key of another name": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["KeySchema"] = []any{object{"AttributeName": "id", "KeyType": "HASH"}}
	}, on("table-key")},
	"a key that is a number": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["AttributeDefinitions"] = []any{object{"AttributeName": "pk", "AttributeType": "N"}}
	}, on("table-key")},
	"five write units": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Table, "BillingModeSummary")
		w.Table["ProvisionedThroughput"] = object{"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
	}, on("table-capacity")},
	"two write units at most": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["OnDemandThroughput"] = object{"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 2}
	}, on("table-capacity")},
	"an index of two write units": {func(w *doctortest.World, _ *doctor.Options) {
		index(w)["OnDemandThroughput"] = object{"MaxWriteRequestUnits": 2}
	}, on("table-capacity")},
	"a table without its encryption key": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["SSEDescription"] = object{"Status": "ENABLED", "SSEType": "KMS", "InaccessibleEncryptionDateTime": 1763800000.5}
	}, on("table-status")},
	"a table whose key is gone": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["TableStatus"] = "INACCESSIBLE_ENCRYPTION_CREDENTIALS"
	}, on("table-status")},
	"a replica in another Region": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["Replicas"] = []any{object{"RegionName": "eu-west-1", "ReplicaStatus": "ACTIVE"}}
	}, on("table-replicas")},
	"replicas with strong consistency": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["Replicas"] = []any{object{"RegionName": "us-east-2", "ReplicaStatus": "ACTIVE"}}
		w.Table["MultiRegionConsistency"] = "STRONG"
	}, on("table-replicas")},
	"an index of one's own": {func(w *doctortest.World, _ *doctor.Options) {
		all, _ := w.Table["GlobalSecondaryIndexes"].([]any)
		w.Table["GlobalSecondaryIndexes"] = append(all, object{"IndexName": "by-route", "IndexStatus": "ACTIVE", "KeySchema": []any{object{"AttributeName": "route", "KeyType": "HASH"}}})
	}, on("table-indexes")},
	"no index":                     {func(w *doctortest.World, _ *doctor.Options) { delete(w.Table, "GlobalSecondaryIndexes") }, on("table-indexes")},
	"an index that is being built": {func(w *doctortest.World, _ *doctor.Options) { index(w)["IndexStatus"] = "CREATING" }, on("table-indexes")},
	"an index with another key": {func(w *doctortest.World, _ *doctor.Options) {
		index(w)["KeySchema"] = []any{object{"AttributeName": "pk", "KeyType": "HASH"}}
	}, on("table-indexes")},
	"an index without its attributes": {func(w *doctortest.World, _ *doctor.Options) {
		index(w)["Projection"] = object{"ProjectionType": "KEYS_ONLY"}
	}, on("table-indexes")},
	"TTL on another attribute": {func(w *doctortest.World, _ *doctor.Options) { w.TTL["AttributeName"] = "expires" }, on("ttl-attribute")},
	"TTL off":                  {func(w *doctortest.World, _ *doctor.Options) { w.TTL = object{"TimeToLiveStatus": "DISABLED"} }, on("ttl-off")},
	"milliseconds in exp_s": {func(w *doctortest.World, _ *doctor.Options) {
		w.Items[0]["exp_s"].(object)["N"] = w.Items[0]["exp_s"].(object)["N"].(string) + "000"
	}, on("ttl-unit")},
	"another layout": {func(w *doctortest.World, _ *doctor.Options) {
		strange := w.Record("9", "orders", "done", time.Hour)
		strange["v"] = object{"N": "3"}
		w.Items = append(w.Items, strange)
	}, on("layout")},
	"a route that treats all callers as one": {func(w *doctortest.World, _ *doctor.Options) {
		public := w.Record("9", "orders", "done", 24*time.Hour)
		public["scope"] = object{"S": "tenant:blue|one:"}
		w.Items = append(w.Items, public)
	}, on("one-scope")},
	"no recovery": {func(w *doctortest.World, _ *doctor.Options) {
		w.Backups["PointInTimeRecoveryDescription"] = object{"PointInTimeRecoveryStatus": "DISABLED"}
	}, on("recovery")},
	"no protection": {func(w *doctortest.World, _ *doctor.Options) { w.Table["DeletionProtectionEnabled"] = false }, on("protection")},
	"a stream of keys": {func(w *doctortest.World, _ *doctor.Options) {
		w.Table["StreamSpecification"].(object)["StreamViewType"] = "KEYS_ONLY"
	}, on("stream-view")},
	"no stream": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Table, "StreamSpecification")
		delete(w.Table, "LatestStreamArn")
	}, on("stream-view")},
	"a stream that nobody reads": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mappings = slices.DeleteFunc(w.Mappings, func(m object) bool { return m["UUID"] == "stream" })
	}, on("stream-reader")},
	"a mapping that is off": {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["State"] = "Disabled" }, on("stream-reader")},
	"three readers": {func(w *doctortest.World, _ *doctor.Options) {
		for _, uuid := range []string{"second", "third"} {
			m := object{"UUID": uuid}
			for name, value := range w.Mapping("stream") {
				if name != "UUID" {
					m[name] = value
				}
			}
			w.Mappings = append(w.Mappings, m)
		}
	}, on("stream-readers")},
	"a filter without removals": {func(w *doctortest.World, _ *doctor.Options) {
		c := w.Mapping("stream")["FilterCriteria"].(object)
		c["Filters"] = c["Filters"].([]any)[:1]
	}, on("stream-filters")},
	"a filter without stuck": {func(w *doctortest.World, _ *doctor.Options) {
		c := w.Mapping("stream")["FilterCriteria"].(object)
		c["Filters"].([]any)[0] = object{"Pattern": `{"dynamodb":{"NewImage":{"st":{"S":["open","done"]}}}}`}
	}, on("stream-filters")},
	"a filter without renewals": {func(w *doctortest.World, _ *doctor.Options) {
		c := w.Mapping("stream")["FilterCriteria"].(object)
		c["Filters"] = append(c["Filters"].([]any)[1:],
			object{"Pattern": `{"eventName":["INSERT"],"dynamodb":{"NewImage":{"st":{"S":["open"]}}}}`},
			object{"Pattern": `{"dynamodb":{"NewImage":{"st":{"S":["done","stuck"]}}}}`})
	}, on("stream-filters")},
	"filters whose key is gone": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Mapping("stream"), "FilterCriteria")
		w.Mapping("stream")["FilterCriteriaError"] = object{"ErrorCode": "KMSAccessDeniedException", "Message": "no key"}
	}, on("stream-filters")},
	"a filter on tickets": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("tickets")["FilterCriteria"] = object{"Filters": []any{object{"Pattern": `{"body":{"kind":["a"]}}`}}}
	}, on("tickets-filters")},
	"a stream that fails": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("stream")["LastProcessingResult"] = "PROBLEM: Function call failed"
	}, on("mapping-result")},
	"a queue that fails": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("tickets")["LastProcessingResult"] = "PROBLEM: Lambda failed to assume your function execution role."
	}, on("mapping-result")},
	"retries without an end": {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["MaximumRetryAttempts"] = -1 }, on("stream-retries")},
	"a function that logs its errors only": {func(w *doctortest.World, _ *doctor.Options) {
		w.Function("orders")["LoggingConfig"] = object{"LogFormat": "JSON", "ApplicationLogLevel": "ERROR"}
	}, on("log-level")},
	"two retries": {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["MaximumRetryAttempts"] = 2 }, on("stream-retries")},
	"no bisecting": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("stream")["BisectBatchOnFunctionError"] = false
	}, on("stream-bisect")},
	"no destination for failures": {func(w *doctortest.World, _ *doctor.Options) { delete(w.Mapping("stream"), "DestinationConfig") }, on("stream-on-failure")},
	"a start at the end":          {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["StartingPosition"] = "LATEST" }, on("stream-start")},
	"six hours of age":            {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["MaximumRecordAgeInSeconds"] = 21600 }, on("stream-age")},
	"no report of the stream":     {func(w *doctortest.World, _ *doctor.Options) { w.Mapping("stream")["FunctionResponseTypes"] = []any{} }, on("report-failures")},
	"no report of a queue":        {func(w *doctortest.World, _ *doctor.Options) { delete(w.Mapping("receipts"), "FunctionResponseTypes") }, on("report-failures")},
	"a sink that is gone": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_SINKS"] = "mail=sqs:https://sqs.us-east-1.amazonaws.com/123456789012/mails"
	}, on("queue-missing")},
	"no schedule of the sweep": {func(w *doctortest.World, _ *doctor.Options) {
		w.Schedules = slices.DeleteFunc(w.Schedules, func(s object) bool { return s["Name"] == "worker-sweep" })
	}, on("schedules")},
	"a schedule that is off": {func(w *doctortest.World, _ *doctor.Options) { w.Schedule("count")["State"] = "DISABLED" }, on("schedules")},
	"a schedule of another Region's worker": {func(w *doctortest.World, _ *doctor.Options) {
		w.Schedule("sweep")["Target"].(object)["Arn"] = "arn:aws:lambda:eu-west-1:123456789012:function:worker"
	}, on("schedules")},
	"both schedules for one task": {func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Schedule("count")["Target"].(object), "Input") // a sweep, then
	}, on("schedules")},
	"a bus that is gone": {func(w *doctortest.World, _ *doctor.Options) { delete(w.Buses, "audit") }, on("bus-missing")},
	"a bus of another account": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_SINKS"] = "audit=events:arn:aws:events:us-east-1:999999999999:event-bus/audit"
	}, on("bus-missing")},
	"a bus of another Region": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_SINKS"] = "audit=events:arn:aws:events:eu-west-1:123456789012:event-bus/audit"
		w.Buses["arn:aws:events:eu-west-1:123456789012:event-bus/audit"] = w.Buses["audit"] // by its name alone
	}, on("bus-missing")},
	"a state machine that is gone": {func(w *doctortest.World, _ *doctor.Options) { w.Machines = nil }, on("machine-standard")},
	"a state machine that is being deleted": {func(w *doctortest.World, _ *doctor.Options) {
		machine(w)["status"] = "DELETING"
	}, on("machine-standard")},
	"an express workflow": {func(w *doctortest.World, _ *doctor.Options) { machine(w)["type"] = "EXPRESS" }, on("machine-standard")},
	"a role that is gone": {func(w *doctortest.World, _ *doctor.Options) { w.Roles = nil }, on("schedule-role")},
	"a role of another account": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_SCHEDULE_ROLE"] = "arn:aws:iam::999999999999:role/samekey/later"
	}, on("schedule-role")},
	"a role of the worker": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Trust = strings.ReplaceAll(w.Roles["later"].Trust, "scheduler.", "lambda.")
	}, on("schedule-role")},
	"a role that nobody may assume": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Trust = strings.ReplaceAll(w.Roles["later"].Trust, `"Allow"`, `"Deny"`)
	}, on("schedule-role")},
	"a role that anybody of the account may assume": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Trust = `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}]}`
	}, on("schedule-role")},
	"a role for another queue": {func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Allowed = []string{"arn:aws:sqs:us-east-1:123456789012:receipts"}
	}, on("schedule-role")},
	"tickets that nobody reads": {func(w *doctortest.World, _ *doctor.Options) {
		w.Mappings = slices.DeleteFunc(w.Mappings, func(m object) bool { return m["UUID"] == "tickets" })
	}, on("tickets-reader")},
	"a FIFO queue of tickets": {func(w *doctortest.World, _ *doctor.Options) {
		fifo := w.Queues["tickets"]
		fifo["QueueArn"] += ".fifo"
		w.Queues["tickets.fifo"] = fifo
		w.Env("worker")["SAMEKEY_TICKETS_URL"] = "https://sqs.us-east-1.amazonaws.com/123456789012/tickets.fifo"
		w.Mapping("tickets")["EventSourceArn"] = fifo["QueueArn"]
		w.Roles["later"].Allowed = []string{fifo["QueueArn"]}
	}, on("tickets-fifo")},
	"a visibility of one timeout": {func(w *doctortest.World, _ *doctor.Options) { w.Queues["tickets"]["VisibilityTimeout"] = "120" }, on("queue-visibility")},
	"no dead letters":             {func(w *doctortest.World, _ *doctor.Options) { delete(w.Queues["receipts"], "RedrivePolicy") }, on("queue-redrive")},
	"one receive": {func(w *doctortest.World, _ *doctor.Options) {
		w.Queues["receipts"]["RedrivePolicy"] = redrive("receipts-dead", "1")
	}, on("queue-receives")},
	"five receives of a ticket": {func(w *doctortest.World, _ *doctor.Options) {
		w.Queues["tickets"]["RedrivePolicy"] = redrive("tickets-dead", "5")
	}, on("tickets-wait")},
	"tickets for ten days":   {func(w *doctortest.World, _ *doctor.Options) { w.Queues["tickets"]["MessageRetentionPeriod"] = "864000" }, on("tickets-wait")},
	"a worker that may loop": {func(w *doctortest.World, _ *doctor.Options) { w.RecursiveLoop = "Allow" }, on("recursion")},
	"dead letters for four days": {func(w *doctortest.World, _ *doctor.Options) {
		w.Queues["tickets-dead"]["MessageRetentionPeriod"] = "345600"
	}, on("dead-letters-kept")},
	"messages for less than the tries": {func(w *doctortest.World, _ *doctor.Options) { w.Queues["receipts"]["MessageRetentionPeriod"] = "600" }, on("queue-kept")},
	"a function with another table": {func(w *doctortest.World, o *doctor.Options) {
		o.Stack = "orders"
		w.Env("receipts")["IDEM_TABLE"] = "old-records"
	}, on("env-table")},
	"a function with the table of another Region": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("orders")["IDEM_TABLE"] = "arn:aws:dynamodb:eu-west-1:123456789012:table/records"
	}, on("env-table")},
	"a function with the table of another account": {func(w *doctortest.World, o *doctor.Options) {
		o.Stack = "orders"
		w.Env("orders")["IDEM_TABLE"] = "arn:aws:dynamodb:us-east-1:999999999999:table/records"
	}, on("env-table")},
	"a table that is named by its ARN, and a function with another": {func(w *doctortest.World, o *doctor.Options) {
		o.Table = "arn:aws:dynamodb:us-east-1:123456789012:table/records"
		w.Env("orders")["IDEM_TABLE"] = "arn:aws:dynamodb:us-west-1:123456789012:table/records"
	}, on("env-table")},
	"a function of another Region": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_FUNCTIONS"] = "arn:aws:lambda:us-east-1:123456789012:function:orders,arn:aws:lambda:eu-west-1:123456789012:function:receipts"
	}, on("completes")},
	"an alias with another table": {func(w *doctortest.World, _ *doctor.Options) {
		alias(w, "orders")["Environment"].(object)["Variables"].(object)["IDEM_TABLE"] = "arn:aws:dynamodb:us-east-1:999999999999:table/records"
	}, on("env-table")},
	"a function with another App": {func(w *doctortest.World, _ *doctor.Options) { w.Env("orders")["SAMEKEY_APP"] = "order" }, on("env-app")},
	"a function that is gone": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_FUNCTIONS"] = "orders,refunds:live"
	}, on("completes")},
	"a function that nobody completes": {func(w *doctortest.World, _ *doctor.Options) { w.Env("worker")["SAMEKEY_FUNCTIONS"] = "" }, on("completes-all")},
	"a worker that is too short":       {func(w *doctortest.World, _ *doctor.Options) { w.Function("worker")["Timeout"] = 15 }, on("worker-timeout")},
	"a function longer than its API":   {func(w *doctortest.World, _ *doctor.Options) { w.Function("orders")["Timeout"] = 60 }, on("gateway-timeout")},
	"a policy with a list of APIs": {func(w *doctortest.World, _ *doctor.Options) {
		w.Policies["orders"] = strings.ReplaceAll(w.Policies["orders"], `"arn:aws:execute-api:us-east-1:123456789012:httpapi001/*/POST/orders"`,
			`["arn:aws:execute-api:us-east-1:123456789012:httpapi001/*/POST/orders","arn:aws:execute-api:us-east-1:123456789012:httpapi001/*/PUT/orders"]`)
		w.Function("orders")["Timeout"] = 60
	}, on("gateway-timeout")},
	"an API shorter than its function": {func(w *doctortest.World, _ *doctor.Options) {
		w.Integrations["httpapi001"][0]["timeoutInMillis"] = 5000
	}, on("gateway-timeout")},
	"a REST API that takes bytes for text": {func(w *doctortest.World, _ *doctor.Options) { w.BinaryMediaTypes = nil }, on("gateway-bytes")},
	"a function of ten minutes": {func(w *doctortest.World, _ *doctor.Options) {
		w.Function("orders")["Timeout"] = 600
		w.Function("worker")["Timeout"] = 700
		w.Queues["tickets"]["VisibilityTimeout"] = "4200"
	}, on("lease", "gateway-timeout")},
	"no concurrency":                    {func(w *doctortest.World, _ *doctor.Options) { w.Concurrency = map[string]int{"orders": 0} }, on("concurrency")},
	"one worker at a time":              {func(w *doctortest.World, _ *doctor.Options) { w.Concurrency = map[string]int{"worker": 1} }, on("concurrency")},
	"clients that retry for three days": {func(_ *doctortest.World, o *doctor.Options) { o.ClientRetries = 72 * time.Hour }, on("retention-clients")},
	"a consumer that forgets": {func(w *doctortest.World, _ *doctor.Options) {
		w.Items[1] = w.Record("2", "receipts", "done", 24*time.Hour)
	}, on("retention-queue")},
	"a grace of a day":                   {func(w *doctortest.World, _ *doctor.Options) { w.Env("worker")["SAMEKEY_GRACE"] = "24h" }, on("provider-keys")},
	"a provider that forgets in an hour": {func(_ *doctortest.World, o *doctor.Options) { o.ProviderRemembers = time.Hour }, on("provider-keys")},
	"no alarm on WaitingStuck": {func(w *doctortest.World, _ *doctor.Options) {
		w.Alarms = slices.DeleteFunc(w.Alarms, func(a object) bool { return a["MetricName"] == "WaitingStuck" })
	}, on("alarms")},
	"alarms of another App": {func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_APP"], w.Env("orders")["SAMEKEY_APP"] = "shop", "shop"
	}, on("alarms")},
	"alarms that nobody hears": {func(w *doctortest.World, _ *doctor.Options) { silence(w) }, on("alarms-heard")},
	"an operator who may not write": {func(w *doctortest.World, _ *doctor.Options) {
		w.Refused["DynamoDB.UpdateItem"] = "AccessDeniedException"
	}, on("rights")},
	"a function that may not claim": {func(w *doctortest.World, o *doctor.Options) {
		o.As = "function"
		w.Refused["DynamoDB.PutItem"] = "AccessDeniedException"
	}, on("rights")},
	"a clock that is a minute behind AWS":  {func(w *doctortest.World, _ *doctor.Options) { w.Now = w.Now.Add(time.Minute) }, on("clock")},
	"a clock that is a minute ahead of it": {func(w *doctortest.World, _ *doctor.Options) { w.Now = w.Now.Add(-time.Minute) }, on("clock")},
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

// index is the table's first index.
func index(w *doctortest.World) object { return w.Table["GlobalSecondaryIndexes"].([]any)[0].(object) }

func redrive(to, receives string) string {
	return `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:` + to + `","maxReceiveCount":"` + receives + `"}`
}

func silence(w *doctortest.World) {
	for _, a := range w.Alarms {
		a["AlarmActions"] = []any{}
	}
}

// Each mistake is found, by its check and by no other.
func TestPlantedMistakes(t *testing.T) { t.Parallel(); synctest.Test(t, plantedMistakes) }

func plantedMistakes(t *testing.T) {
	planted := make(map[string]bool)
	for name, p := range plants {
		w, opt := world(), options()
		p.do(w, &opt)
		r := examine(t, w, opt)
		var got []string
		for _, f := range r.Findings {
			got = append(got, f.Check)
			if f.Where == "" || f.What == "" || f.Causes == "" || f.Mend == "" || f.Severity == "" {
				t.Errorf("%s: the finding %+v is not complete", name, f)
			}
		}
		got = compact(got)
		if want := compact(slices.Clone(p.find)); !slices.Equal(got, want) {
			t.Errorf("%s: found by %v, want %v: %+v", name, got, want, r.Findings)
		}
		missing := func(f doctor.Finding) bool { return strings.Contains(f.What, "doesn't exist") }
		if strings.HasSuffix(name, " that is gone") && !slices.ContainsFunc(r.Findings, missing) {
			t.Errorf("%s: no finding says that it doesn't exist: %+v", name, r.Findings)
		}
		for _, check := range p.find {
			planted[check] = true
		}
	}
	for _, c := range doctor.All() {
		if !planted[c.ID] {
			t.Errorf("no mistake is planted for %s", c.ID)
		}
	}
}

func compact(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// What AWS doesn't answer is not checked, and is never good.
func TestNoRightsIsNotGood(t *testing.T) { t.Parallel(); synctest.Test(t, noRights) }

func noRights(t *testing.T) {
	sources := map[doctor.Source]string{
		doctor.DescribeTable: "DynamoDB.DescribeTable", doctor.DescribeTTL: "DynamoDB.DescribeTimeToLive", doctor.DescribeBackup: "DynamoDB.DescribeContinuousBackups",
		doctor.ScanTable: "DynamoDB.Scan", doctor.ServerClock: "DynamoDB.DescribeTable", doctor.Functions: "Lambda.ListFunctions",
		doctor.Mappings: "Lambda.ListEventSourceMappings", doctor.Concurrency: "Lambda.GetFunctionConcurrency", doctor.Recursion: "Lambda.GetFunctionRecursionConfig", doctor.Policies: "Lambda.GetPolicy",
		doctor.Queues: "SQS.GetQueueAttributes", doctor.Buses: "EventBridge.DescribeEventBus", doctor.Machines: "StepFunctions.DescribeStateMachine",
		doctor.ScheduleRole: "IAM.GetRole", doctor.Simulation: "IAM.SimulatePrincipalPolicy", doctor.Schedules: "Scheduler.GetSchedule", doctor.Gateways: "APIGateway.", doctor.Alarms: "CloudWatch.DescribeAlarms",
	}
	for _, c := range doctor.All() {
		for _, s := range c.Needs {
			op, ok := sources[s]
			if !ok {
				t.Fatalf("%s is not refused by any test", s)
			}
			w, opt := world(), options()
			w.Refused[op] = "AccessDeniedException"
			opt.As = ""
			r := examine(t, w, opt)
			if slices.Contains(r.Good, c.ID) || !slices.ContainsFunc(r.NotChecked, func(u doctor.Unchecked) bool { return u.Check == c.ID && u.Why != "" }) {
				t.Errorf("without %s, %s is good, or not listed: %+v", op, c.ID, r.NotChecked)
			}
			if len(r.Findings) != 0 {
				t.Errorf("without %s: %+v", op, r.Findings)
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
		"the stack nothing can't be read: ValidationError: Stack with id nothing does not exist": {Stack: "nothing"},
	} {
		_, err := doctor.Gather(context.Background(), doctor.NewClients(config(world()), nil), opt)
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

// The page lists the permission of each call that the command makes.
func TestPageListsThePermissions(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/operate/doctor.md")
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
