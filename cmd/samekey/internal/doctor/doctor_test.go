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
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor"
	"github.com/samekey/samekey/cmd/samekey/internal/doctor/doctortest"
	"github.com/samekey/samekey/internal/metrictable"
)

type object = doctortest.Object

// examine examines a world through the SDK's clients.
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

// options returns options with which every check can be made.
func options() doctor.Options {
	return doctor.Options{Table: "records", As: "operator", ClientRetries: 12 * time.Hour}
}

func world() *doctortest.World { return doctortest.Good(time.Now()) }

// still runs a test in a bubble, where the clock stands still: the clock
// of a slow machine would be a finding.
func still(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// A deployment without mistakes has no findings, and every check is made.
func TestGoodDeployment(t *testing.T) { still(t, goodDeployment) }

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

// change is a change of a deployment or of the options.
type change func(*doctortest.World, *doctor.Options)

func put(o object, name string, v any) {
	if v == nil {
		delete(o, name)
		return
	}
	o[name] = v
}

// table sets a field of the table; nil removes the field.
func table(name string, v any) change {
	return func(w *doctortest.World, _ *doctor.Options) { put(w.Table, name, v) }
}

func index(name string, v any) change {
	return func(w *doctortest.World, _ *doctor.Options) {
		put(w.Table["GlobalSecondaryIndexes"].([]any)[0].(object), name, v)
	}
}

func mapping(uuid, name string, v any) change {
	return func(w *doctortest.World, _ *doctor.Options) { put(w.Mapping(uuid), name, v) }
}

func stream(name string, v any) change { return mapping("stream", name, v) }

func function(name, field string, v any) change {
	return func(w *doctortest.World, _ *doctor.Options) { put(w.Function(name), field, v) }
}

func env(name, variable string, v any) change {
	return func(w *doctortest.World, _ *doctor.Options) { put(w.Env(name), variable, v) }
}

func queue(name, attribute, v string) change {
	return func(w *doctortest.World, _ *doctor.Options) { w.Queues[name][attribute] = v }
}

func refused(op string) change {
	return func(w *doctortest.World, _ *doctor.Options) { w.Refused[op] = "AccessDeniedException" }
}

func trust(policy string) change {
	return func(w *doctortest.World, _ *doctor.Options) { w.Roles["later"].Trust = policy }
}

// code gives a function a program with this version of Samekey.
func code(name, version, replace string) change {
	return func(w *doctortest.World, o *doctor.Options) {
		file, err := doctortest.Program("github.com/samekey/samekey", version, replace)
		if err != nil {
			panic(err)
		}
		unpacked(name, file)(w, o)
	}
}

// other gives a function a program without Samekey.
func other(name string) change {
	return func(w *doctortest.World, o *doctor.Options) {
		file, err := doctortest.Program("example.com/other", "v1.0.0", "")
		if err != nil {
			panic(err)
		}
		unpacked(name, file)(w, o)
	}
}

func unpacked(name string, file []byte) change {
	return there(func(w *doctortest.World) {
		w.Code = maps.Clone(w.Code)
		if w.Code == nil {
			w.Code = make(map[string][]byte)
		}
		w.Code[name] = file
	})
}

func zipped(name string, content []byte) []byte {
	file, err := doctortest.Zip(name, content)
	if err != nil {
		panic(err)
	}
	return file
}

func asked(do func(*doctor.Options)) change {
	return func(_ *doctortest.World, o *doctor.Options) { do(o) }
}

func there(do func(*doctortest.World)) change {
	return func(w *doctortest.World, _ *doctor.Options) { do(w) }
}

// without removes the objects whose field has this value.
func without(all func(*doctortest.World) *[]object, field, value string) change {
	return there(func(w *doctortest.World) {
		list := all(w)
		*list = slices.DeleteFunc(*list, func(o object) bool { return o[field] == value })
	})
}

func mappings(w *doctortest.World) *[]object  { return &w.Mappings }
func schedules(w *doctortest.World) *[]object { return &w.Schedules }
func alarms(w *doctortest.World) *[]object    { return &w.Alarms }

func filters(patterns ...string) object {
	all := make([]any, len(patterns))
	for i, p := range patterns {
		all[i] = object{"Pattern": p}
	}
	return object{"Filters": all}
}

func machine(name string, v any) change {
	return there(func(w *doctortest.World) {
		put(w.Machines["arn:aws:states:us-east-1:123456789012:stateMachine:ship"], name, v)
	})
}

// item adds a record to the table.
func item(function, state string, kept time.Duration) change {
	return there(func(w *doctortest.World) { w.Items = append(w.Items, w.Record("9", function, state, kept)) })
}

// milliseconds gives the first record a time of expiry in milliseconds.
func milliseconds(w *doctortest.World, _ *doctor.Options) {
	exp := w.Items[0]["exp_s"].(object)
	exp["N"] = exp["N"].(string) + "000"
}

func redrive(to, receives string) string {
	return `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:` + to + `","maxReceiveCount":"` + receives + `"}`
}

// alarmed returns the names of the metrics that which selects.
func alarmed(which func(metrictable.Metric) bool) string {
	var names []string
	for _, m := range metrictable.All() {
		if which(m) {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}

// alias gives a function the alias live. The function's mappings, policy and integrations
// become the alias's. alias returns the configuration of the alias's version.
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

// deployment holds the changes of a deployment, and the verdict about it.
type deployment struct {
	want []string
	do   []change
}

func finds(want string, do ...change) deployment {
	return deployment{strings.Split(want, "\n"), do}
}

// mistaken returns deployments with mistakes, or with parts that can't be checked.
func mistaken() []deployment {
	const (
		arn     = "arn:aws:lambda:us-east-1:123456789012:function:"
		role    = "error: schedule-role: role arn:aws:iam::123456789012:role/samekey/later: "
		machina = "error: machine-standard: state machine arn:aws:states:us-east-1:123456789012:stateMachine:ship: "
		unread  = "not checked: stream-readers stream-filters stream-retries stream-bisect stream-on-failure stream-start stream-age: no function reads the stream"
		unkept  = "not checked: retention-queue: the sample has no finished record of a function that reads a queue"
		unasked = ": AccessDeniedException: not for tests (unanswered)"
	)
	removed := "the removal of an open record, the removal of a stuck record, the removal of a finished record with jobs"
	return []deployment{
		// the table
		finds("error: table-key: table records: its key is id HASH ()", table("KeySchema", []any{object{"AttributeName": "id", "KeyType": "HASH"}})),
		finds("warning: table-capacity: table records: it may write 5 units a second",
			table("BillingModeSummary", nil), table("ProvisionedThroughput", object{"ReadCapacityUnits": 5, "WriteCapacityUnits": 5})),
		finds("warning: table-capacity: table records: it may write 2 units a second",
			table("OnDemandThroughput", object{"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 2})),
		finds("warning: table-capacity: table records: its index waiting may write 2 units a second",
			index("OnDemandThroughput", object{"MaxWriteRequestUnits": 2})),
		finds("error: table-status: table records: it has had no access to its KMS key since 2025-11-22T08:26:40Z",
			table("SSEDescription", object{"Status": "ENABLED", "SSEType": "KMS", "InaccessibleEncryptionDateTime": 1763800000.5})),
		finds("error: table-status: table records: it is INACCESSIBLE_ENCRYPTION_CREDENTIALS",
			table("TableStatus", "INACCESSIBLE_ENCRYPTION_CREDENTIALS")),
		finds("warning: table-replicas: table records: it has replicas with eventual consistency: eu-west-1",
			table("Replicas", []any{object{"RegionName": "eu-west-1", "ReplicaStatus": "ACTIVE"}})),
		finds("warning: table-indexes: table records: the template has no index by-route: "+
			"every write costs twice as much, and a hot partition of the index throttles the table", there(func(w *doctortest.World) {
			w.Table["GlobalSecondaryIndexes"] = append(w.Table["GlobalSecondaryIndexes"].([]any), object{
				"IndexName": "by-route", "IndexStatus": "ACTIVE", "KeySchema": []any{object{"AttributeName": "route", "KeyType": "HASH"}},
			})
		})),
		finds("error: table-indexes: table records: the index waiting is missing", table("GlobalSecondaryIndexes", nil)),
		finds("error: table-indexes: table records: the index waiting is CREATING", index("IndexStatus", "CREATING")),
		finds("error: table-indexes: table records: the key of the index waiting is pk HASH, and should be waits HASH, wait_ms RANGE",
			index("KeySchema", []any{object{"AttributeName": "pk", "KeyType": "HASH"}})),
		finds("error: table-indexes: table records: the index waiting projects KEYS_ONLY, and should project INCLUDE "+
			"about created_ms exp_s fn hn id last_err route run_ms tries wait_in", index("Projection", object{"ProjectionType": "KEYS_ONLY"})),
		finds("error: ttl-attribute: table records: TTL is on expires", there(func(w *doctortest.World) { w.TTL["AttributeName"] = "expires" })),
		finds("warning: ttl-off: table records: TTL is off", there(func(w *doctortest.World) { w.TTL = object{"TimeToLiveStatus": "DISABLED"} })),
		finds("warning: ttl-off: table records: TTL is off\nwarning: recovery: table records: point-in-time recovery is off",
			there(func(w *doctortest.World) { w.TTL, w.Backups = nil, object{} })),
		finds("error: ttl-unit: table records: 1 of 3 records have an exp_s that is not a time in seconds, for example 946767601000", milliseconds),
		finds("error: layout: table records: 1 of 4 items can't be read: dynamo: record is corrupt: layout version 3 is not known to this program",
			item("orders", "done", time.Hour), there(func(w *doctortest.World) { w.Items[3]["v"] = object{"N": "3"} })),
		finds(`warning: one-scope: table records: all callers of "POST /orders" share one scope (idem.OneScope)`,
			item("orders", "done", 24*time.Hour), there(func(w *doctortest.World) { w.Items[3]["scope"] = object{"S": "tenant:blue|one:"} })),
		finds("note: protection: table records: deletion protection is off", table("DeletionProtectionEnabled", false)),
		finds("not checked: retention-queue: the sample has no finished record of a function that reads a queue\n"+
			"not checked: retention-clients: the sample has no finished record that shows the retention\n"+
			"not checked: ttl-unit layout: the sample has no record", there(func(w *doctortest.World) { w.Items = nil })),
		// the table's stream
		finds("error: stream-view: table records: its stream shows KEYS_ONLY",
			table("StreamSpecification", object{"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"})),
		finds("error: stream-view: table records: it has no stream\n"+unread+"\nnot checked: stream-reader: the table has no stream",
			table("StreamSpecification", object{"StreamEnabled": false})),
		finds("error: stream-reader: table records: no function reads its stream\n"+unread, without(mappings, "UUID", "stream")),
		finds("error: stream-reader: mapping of stream to worker: it is Disabled (UUID stream)\n"+
			"not checked: stream-filters: no function reads the stream", stream("State", "Disabled")),
		finds("warning: stream-readers: table records: 3 mappings read its stream, for the functions worker, worker, worker", there(func(w *doctortest.World) {
			for _, uuid := range []string{"second", "third"} {
				w.Mappings = append(w.Mappings, clone(w.Mapping("stream")))
				w.Mappings[len(w.Mappings)-1]["UUID"] = uuid
			}
		})),
		finds("error: stream-filters: table records: the filters of its stream's mappings, for the functions worker, leave out "+removed, there(func(w *doctortest.World) {
			c := w.Mapping("stream")["FilterCriteria"].(object)
			c["Filters"] = c["Filters"].([]any)[:1]
		})),
		finds("error: stream-filters: table records: the filters of its stream's mappings, for the functions worker, leave out the renewal of an open record, "+removed, stream("FilterCriteria",
			filters(`{"eventName":["INSERT"],"dynamodb":{"NewImage":{"st":{"S":["open"]}}}}`, `{"dynamodb":{"NewImage":{"st":{"S":["done","stuck"]}}}}`))),
		finds("error: stream-filters: mapping of stream to worker: its filters can't be read: KMSAccessDeniedException: no key",
			stream("FilterCriteria", nil), stream("FilterCriteriaError", object{"ErrorCode": "KMSAccessDeniedException", "Message": "no key"})),
		finds("not checked: stream-filters: can't read the filters of worker: filter {: not JSON: unexpected EOF",
			stream("FilterCriteria", filters("{"))),
		finds("error: stream-filters: table records: the filters of its stream's mappings, for the functions worker, leave out "+
			"an open record, the renewal of an open record, a finished record, a stuck record", stream("FilterCriteria",
			filters(`{"dynamodb":{"NewImage":{"pk":{"S":[{"prefix":"v1##"}]}}}}`, `{"userIdentity":{"principalId":["dynamodb.amazonaws.com"]}}`))),
		finds("error: stream-reader: mapping of stream to worker: it is Disabled (UUID all)\n"+
			"error: stream-filters: table records: the filters of its stream's mappings, for the functions worker, worker, leave out "+removed,
			there(func(w *doctortest.World) {
				for uuid, state := range map[string]string{"all": "Disabled", "new": "Enabled"} {
					m := clone(w.Mapping("stream"))
					m["UUID"], m["State"] = uuid, state
					w.Mappings = append(w.Mappings, m)
					if state == "Enabled" {
						m["FilterCriteria"] = filters(`{"eventName":["INSERT"]}`)
					}
				}
				c := w.Mapping("stream")["FilterCriteria"].(object)
				c["Filters"] = c["Filters"].([]any)[:1]
			})),
		finds("error: mapping-result: mapping of stream to worker: PROBLEM: Function call failed",
			stream("LastProcessingResult", "PROBLEM: Function call failed")),
		finds("error: stream-retries: mapping of stream to worker: it has no limit of retries",
			stream("MaximumRetryAttempts", nil)),
		finds("warning: stream-age: mapping of stream to worker: the mapping gives up records that are 3600 s old",
			stream("MaximumRetryAttempts", -1), stream("MaximumRecordAgeInSeconds", 3600)),
		finds("error: stream-retries: mapping of stream to worker: it gives up a batch after 0 retries", stream("MaximumRetryAttempts", 0)),
		finds("warning: stream-bisect: mapping of stream to worker: BisectBatchOnFunctionError is off", stream("BisectBatchOnFunctionError", false)),
		finds("warning: stream-on-failure: mapping of stream to worker: it has no on-failure destination", stream("DestinationConfig", nil)),
		finds("warning: stream-start: mapping of stream to worker: StartingPosition is LATEST", stream("StartingPosition", "LATEST")),
		finds("warning: stream-age: mapping of stream to worker: the mapping gives up records that are 21600 s old",
			stream("MaximumRecordAgeInSeconds", 21600)),
		finds("error: report-failures: mapping of stream to worker: FunctionResponseTypes has no ReportBatchItemFailures",
			stream("FunctionResponseTypes", []any{})),
		// queues, buses, state machines and schedules
		finds("error: report-failures: mapping of queue receipts to receipts: FunctionResponseTypes has no ReportBatchItemFailures",
			mapping("receipts", "FunctionResponseTypes", nil)),
		finds("error: tickets-filters: mapping of queue tickets to worker: it has a filter",
			mapping("tickets", "FilterCriteria", filters(`{"body":{"kind":["a"]}}`))),
		finds("error: queue-missing: queue https://sqs.us-east-1.amazonaws.com/123456789012/mails: it doesn't exist",
			env("worker", "SAMEKEY_SINKS", "mail=sqs:https://sqs.us-east-1.amazonaws.com/123456789012/mails")),
		finds("error: schedules: function worker: there is no schedule for the task sweep", without(schedules, "Name", "worker-sweep")),
		finds("error: schedules: function worker: its schedule worker-count for the task count is off",
			there(func(w *doctortest.World) { w.Schedule("count")["State"] = "DISABLED" })),
		finds("error: schedules: function worker: there is no schedule for the task sweep", there(func(w *doctortest.World) {
			w.Schedule("sweep")["Target"].(object)["Arn"] = "arn:aws:lambda:eu-west-1:123456789012:function:worker"
		})),
		finds("error: bus-missing: bus audit: it doesn't exist", there(func(w *doctortest.World) { delete(w.Buses, "audit") })),
		finds("error: bus-missing: bus arn:aws:events:eu-west-1:123456789012:event-bus/audit: the worker sends to "+
			"arn:aws:events:eu-west-1:123456789012:event-bus/audit, but the bus has the ARN arn:aws:events:us-east-1:123456789012:event-bus/audit",
			env("worker", "SAMEKEY_SINKS", "audit=events:arn:aws:events:eu-west-1:123456789012:event-bus/audit"), there(func(w *doctortest.World) {
				w.Buses["arn:aws:events:eu-west-1:123456789012:event-bus/audit"] = w.Buses["audit"] // by the bus's name only
			})),
		finds(machina+"it doesn't exist", there(func(w *doctortest.World) { w.Machines = nil })),
		finds(machina+"its type is EXPRESS, and only a STANDARD state machine remembers the names of its executions", machine("type", "EXPRESS")),
		finds(role+"it doesn't exist", there(func(w *doctortest.World) { w.Roles = nil })),
		finds("error: schedule-role: role arn:aws:iam::999999999999:role/samekey/later: it doesn't exist",
			env("worker", "SAMEKEY_SCHEDULE_ROLE", "arn:aws:iam::999999999999:role/samekey/later")),
		finds(role+"scheduler.amazonaws.com isn't allowed to assume the role", trust(`{"Statement":[
			{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"*"},
			{"Effect":"Deny","Principal":{"Service":"scheduler.amazonaws.com"},"Action":"*"},
			{"Effect":"Allow","Principal":{"Service":"scheduler.amazonaws.com"},"Action":"sts:TagSession"}]}`)),
		finds("not checked: schedule-role: role later: can't read who may assume the role: unexpected end of JSON input (unanswered)", trust("{")),
		finds(role+"it isn't allowed to send to arn:aws:sqs:us-east-1:123456789012:tickets",
			there(func(w *doctortest.World) {
				w.Roles["later"].Allowed = []string{"arn:aws:sqs:us-east-1:123456789012:receipts"}
			})),
		finds("error: tickets-reader: queue tickets: worker doesn't read the queue", without(mappings, "UUID", "tickets")),
		finds("error: tickets-reader: mapping of queue tickets to worker: it is Disabled", mapping("tickets", "State", "Disabled")),
		finds("error: tickets-fifo: function worker: SAMEKEY_TICKETS_URL names a FIFO queue", func(w *doctortest.World, _ *doctor.Options) {
			fifo := w.Queues["tickets"]
			fifo["QueueArn"] += ".fifo"
			w.Queues["tickets.fifo"] = fifo
			w.Env("worker")["SAMEKEY_TICKETS_URL"] = "https://sqs.us-east-1.amazonaws.com/123456789012/tickets.fifo"
			w.Mapping("tickets")["EventSourceArn"] = fifo["QueueArn"]
			w.Roles["later"].Allowed = []string{fifo["QueueArn"]}
		}),
		finds("warning: queue-visibility: queue tickets: VisibilityTimeout is 2m0s, but worker may take 2m0s: set at least 720 seconds",
			queue("tickets", "VisibilityTimeout", "120")),
		finds("error: queue-redrive: queue receipts: it has no redrive policy", there(func(w *doctortest.World) { delete(w.Queues["receipts"], "RedrivePolicy") })),
		finds("warning: queue-receives: queue receipts: maxReceiveCount is 1", queue("receipts", "RedrivePolicy", redrive("receipts-dead", "1"))),
		finds("error: tickets-wait: queue tickets: maxReceiveCount is 5", queue("tickets", "RedrivePolicy", redrive("tickets-dead", "5"))),
		finds("error: tickets-wait: queue tickets: MessageRetentionPeriod is 240h", queue("tickets", "MessageRetentionPeriod", "864000")),
		finds("warning: dead-letters-kept: queue tickets-dead: MessageRetentionPeriod is 96h, but the source queue's is 336h",
			queue("tickets-dead", "MessageRetentionPeriod", "345600")),
		finds("error: queue-kept: queue receipts: MessageRetentionPeriod is 10m, but 5 receives take up to 15m",
			queue("receipts", "MessageRetentionPeriod", "600")),
		finds("error: queue-missing: queue receipts: it doesn't exist\nerror: queue-missing: queue tickets-dead: it doesn't exist\n"+
			"error: queue-missing: queue https://sqs.us-east-1.amazonaws.com/123456789012/receipts: it doesn't exist\n"+
			"error: queue-redrive: queue tickets: its dead-letter queue doesn't exist: arn:aws:sqs:us-east-1:123456789012:tickets-dead\n"+unkept,
			there(func(w *doctortest.World) {
				delete(w.Queues, "receipts")
				delete(w.Queues, "tickets-dead")
			})),
		finds("error: queue-missing: queue tickets: it doesn't exist\n"+
			"error: queue-missing: queue https://sqs.us-east-1.amazonaws.com/123456789012/tickets: it doesn't exist\n"+
			"not checked: tickets-reader tickets-wait: the queue of tickets was not found\n"+
			"not checked: schedule-role: the queue of tickets was not found (unanswered)", there(func(w *doctortest.World) { delete(w.Queues, "tickets") })),
		// functions
		finds("note: recursion: function worker: its RecursiveLoop is Allow", there(func(w *doctortest.World) { w.RecursiveLoop = "Allow" })),
		finds("error: log-level: function orders: its ApplicationLogLevel is ERROR",
			function("orders", "LoggingConfig", object{"LogFormat": "JSON", "ApplicationLogLevel": "ERROR"})),
		finds("error: env-table: function receipts: IDEM_TABLE is old-records",
			asked(func(o *doctor.Options) { o.Stack = "orders" }), env("receipts", "IDEM_TABLE", "old-records")),
		finds("error: env-table: function orders: IDEM_TABLE is arn:aws:dynamodb:eu-west-1:123456789012:table/records",
			env("orders", "IDEM_TABLE", "arn:aws:dynamodb:eu-west-1:123456789012:table/records")),
		finds("error: env-table: function orders:live: IDEM_TABLE is arn:aws:dynamodb:us-east-1:999999999999:table/records", there(func(w *doctortest.World) {
			alias(w, "orders")["Environment"].(object)["Variables"].(object)["IDEM_TABLE"] = "arn:aws:dynamodb:us-east-1:999999999999:table/records"
		})),
		finds("warning: env-app: function orders: SAMEKEY_APP is order, but another function has orders", env("orders", "SAMEKEY_APP", "order")),
		finds("error: completes: function worker: SAMEKEY_FUNCTIONS names refunds:live, which doesn't exist",
			env("worker", "SAMEKEY_FUNCTIONS", "orders,refunds:live")),
		finds("error: completes-all: function worker: SAMEKEY_FUNCTIONS lacks orders, which has open operations with a stored request",
			env("worker", "SAMEKEY_FUNCTIONS", "")),
		finds("error: worker-timeout: function worker: its Timeout is 3s, but the Timeout of orders is 3s",
			function("orders", "Timeout", nil), function("worker", "Timeout", 3)),
		finds("warning: gateway-timeout: function orders: its Timeout is 1m0s, but API httpapi001 waits only for 30s\n"+
			"warning: gateway-timeout: function orders: its Timeout is 1m0s, but API restapi001 waits only for 29s", function("orders", "Timeout", 60)),
		finds("note: gateway-bytes: function orders: the REST API restapi001 in front of the function has no binary media types",
			there(func(w *doctortest.World) { w.BinaryMediaTypes = nil })),
		finds("not checked: gateway-timeout: no API in front of the functions was found", there(func(w *doctortest.World) { w.Policies = nil })),
		finds("not checked: gateway-timeout gateway-bytes asynchronous schedules: orders: can't read the function's policy: "+
			"unexpected end of JSON input (unanswered)", there(func(w *doctortest.World) { w.Policies["orders"] = "{" })),
		finds("not checked: gateway-timeout gateway-bytes: restapi001"+unasked, refused("APIGateway.GetRestApi")),
		finds("warning: gateway-timeout: function orders: its Timeout is 10m0s, but API httpapi001 waits only for 30s\n"+
			"warning: gateway-timeout: function orders: its Timeout is 10m0s, but API restapi001 waits only for 29s\n"+
			"warning: lease: function orders: its Timeout is 10m0s",
			function("orders", "Timeout", 600), function("worker", "Timeout", 700), queue("tickets", "VisibilityTimeout", "4200")),
		finds("warning: asynchronous: function receipts: its MaximumEventAgeInSeconds is 6m0s, but with a Timeout of 2m0s the last necessary retry may start 7m0s after the event",
			function("receipts", "Timeout", 120), queue("receipts", "VisibilityTimeout", "800"), there(func(w *doctortest.World) {
				w.EventInvokes = map[string]object{"receipts": {"MaximumEventAgeInSeconds": 360}}
				w.Policies["receipts"] = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"lambda:InvokeFunction"}]}`
			})),
		finds("error: concurrency: function orders: its reserved concurrency is 0",
			there(func(w *doctortest.World) { w.Concurrency = map[string]int{"orders": 0} })),
		finds("warning: concurrency: function worker: its reserved concurrency is 1",
			there(func(w *doctortest.World) { w.Concurrency = map[string]int{"worker": 1} })),
		finds("not checked: tickets-wait: the queue of tickets was not found\n"+
			"not checked: queue-missing bus-missing machine-standard tickets-reader tickets-fifo tickets-filters env-app completes completes-all "+
			"worker-timeout recursion provider-keys alarms alarms-heard hooks schedules schedule-role: the worker was not found: no function has the variable SAMEKEY_TICKETS_URL",
			env("worker", "SAMEKEY_TICKETS_URL", nil)),
		finds(noFunctionChecked+"it is local (unanswered)", asked(func(o *doctor.Options) { o.TableOnly = "it is local" })),
		finds(noFunctionChecked+"no function has the variable IDEM_TABLE=records; give --stack or --function (unanswered)",
			there(func(w *doctortest.World) { w.Functions, w.Mappings = nil, nil })),
		finds(noFunctionChecked+"receipts: the function's variables can't be read: no key (unanswered)", asked(func(o *doctor.Options) { o.Stack = "orders" }),
			function("receipts", "Environment", object{"Error": object{"ErrorCode": "AccessDeniedException", "Message": "no key"}})),
		finds(noFunctionChecked+arn+"orders: the function's aliases can't be read"+unasked, refused("Lambda.ListAliases")),
		// retentions, alarms, permissions and clocks
		finds("error: retention-clients: function orders: its answers are kept for 24h, but clients retry for 72h",
			asked(func(o *doctor.Options) { o.ClientRetries = 72 * time.Hour })),
		finds("error: retention-clients: function orders: its answers are kept for 1h1m, but clients retry for 12h",
			item("orders", "done", 61*time.Minute), item("orders", "done", 48*time.Hour)),
		finds("error: retention-queue: function receipts: it remembers a message for 24h, but queue receipts may deliver the message again for 672h",
			there(func(w *doctortest.World) { w.Items[1] = w.Record("2", "receipts", "done", 24*time.Hour) })),
		finds("warning: retention-queue: function receipts: it remembers a message for 336h, but queue receipts may deliver the message again for 672h: "+
			"a message that is redriven late from the dead-letter queue is processed twice",
			there(func(w *doctortest.World) { w.Items[1] = w.Record("2", "receipts", "done", 14*24*time.Hour) })),
		finds("not checked: retention-clients: give --client-retries, the time for which clients retry\n"+
			"not checked: rights: no role given: give --as function, worker or operator",
			asked(func(o *doctor.Options) { o.ClientRetries, o.As = 0, "" })),
		finds("warning: provider-keys: function worker: the completer takes up an abandoned request 24h15m15s after its claim. Since the provider forgets a key after 24h, less than an hour is left for the call",
			env("worker", "SAMEKEY_GRACE", "24h")),
		finds("warning: provider-keys: function worker: the completer takes up an abandoned request 20m15s after its claim. Since the provider forgets a key after 1h20m15s, less than an hour is left for the call",
			env("worker", "SAMEKEY_GRACE", nil), asked(func(o *doctor.Options) { o.ProviderRemembers = time.Hour + 20*time.Minute + 15*time.Second })),
		finds("warning: alarms: alarms of App orders: no alarm on WaitingStuck", without(alarms, "MetricName", "WaitingStuck")),
		finds("warning: alarms: alarms of App shop: no alarm on "+alarmed(func(m metrictable.Metric) bool { return m.Alarm.Name != "" }),
			env("worker", "SAMEKEY_APP", "shop"), env("orders", "SAMEKEY_APP", "shop"),
			there(func(w *doctortest.World) { w.Metrics[0]["Dimensions"] = []any{object{"Name": "App", "Value": "shop"}} })),
		finds("note: alarms-heard: alarms of App orders: these notify nobody: "+alarmed(func(metrictable.Metric) bool { return true }), there(func(w *doctortest.World) {
			for _, a := range w.Alarms {
				a["AlarmActions"] = []any{}
			}
		})),
		finds("warning: hooks: metrics of App orders: the metric Requests is missing, though the sample has a request that ran at "+
			time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC).Format(time.RFC3339),
			there(func(w *doctortest.World) {
				w.Metrics[0]["Dimensions"] = []any{object{"Name": "App", "Value": "another"}}
			})),
		finds("error: rights: your credentials, compared with the role operator: dynamodb:UpdateItem is refused (AccessDeniedException: not for tests)",
			refused("DynamoDB.UpdateItem")),
		finds("not checked: rights: ThrottlingException: not for tests",
			there(func(w *doctortest.World) { w.Refused["DynamoDB.UpdateItem"] = "ThrottlingException" })),
		finds("not checked: rights: ThrottlingException: not for tests\n"+
			"not checked: ttl-unit layout one-scope completes-all retention-clients retention-queue hooks: ThrottlingException: not for tests (unanswered)",
			there(func(w *doctortest.World) { w.Refused["DynamoDB.Scan"] = "ThrottlingException" })),
		finds("warning: versions: versions of Samekey: v0.1.1 is in orders; v0.1.0 is in receipts, worker", code("orders", "v0.1.1", "")),
		finds("warning: versions: versions of Samekey: v0.1.0 is in orders, receipts, worker; v0.1.1 is in this command", asked(func(o *doctor.Options) { o.Version = "v0.1.1" })),
		finds("warning: versions: versions of Samekey: v0.1.1 is in orders; v0.1.0 is in receipts\nnot checked: versions: worker was built from a checkout and has no version",
			code("orders", "v0.1.1", ""), code("worker", "v0.0.0", "../samekey")),
		finds("warning: versions: versions of Samekey: v0.1.0 is in orders, receipts; example.com/fork v0.1.0 is in worker", code("worker", "v0.1.0", "example.com/fork v0.1.0")),
		finds("not checked: versions: this command was built from a checkout and has no version", asked(func(o *doctor.Options) { o.Version = "(devel)" })),
		finds("not checked: versions: worker is a container image", function("worker", "PackageType", "Image")),
		finds("not checked: versions: worker is not a zip file", unpacked("worker", nil)),
		finds("not checked: versions: worker has no file named bootstrap", unpacked("worker", zipped("main.py", nil))),
		finds("not checked: versions: worker has a bootstrap file that lacks the build info of a Go program", unpacked("worker", zipped("bootstrap", []byte("#!/bin/sh")))),
		finds("not checked: versions: no function that contains Samekey was found", other("orders"), other("receipts"), other("worker")),
		finds("not checked: versions: orders: its code can't be read: code.example.com answers 403 (unanswered)", refused("Code")),
		finds("not checked: versions: orders: AccessDeniedException: not for tests (unanswered)", refused("Lambda.GetFunction")),
		finds("warning: clock: this machine's clock: it is 7s behind", there(func(w *doctortest.World) { w.Now = w.Now.Add(7 * time.Second) })),
		finds("warning: clock: this machine's clock: it is 1m0s ahead", there(func(w *doctortest.World) { w.Now = w.Now.Add(-time.Minute) })),
		finds("not checked: clock: DynamoDB's answers have no Date header (unanswered)", there(func(w *doctortest.World) { w.Now = time.Time{} })),
	}
}

// Exactly one check finds each mistake, and a check that can't be made gives the reason.
func TestMistakes(t *testing.T) { still(t, mistakes) }

func mistakes(t *testing.T) {
	planted := make(map[string]bool)
	for _, d := range mistaken() {
		w, opt := world(), options()
		for _, do := range d.do {
			do(w, &opt)
		}
		r := examine(t, w, opt)
		if diff := cmp.Diff(d.want, verdict(r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, f := range r.Findings {
			planted[f.Check] = true
			if f.Causes == "" || f.Mend == "" {
				t.Errorf("the finding %+v is not complete", f)
			}
		}
	}
	for _, c := range doctor.All() {
		if !planted[c.ID] {
			t.Errorf("no mistake is planted for %s", c.ID)
		}
	}
}

// sound are unusual deployments without a mistake.
var sound = map[string]change{
	"aliases": func(w *doctortest.World, _ *doctor.Options) {
		for _, name := range []string{"orders", "receipts", "worker"} {
			alias(w, name)
			w.Function(name)["Environment"] = object{"Variables": object{"IDEM_TABLE": "records-dev"}} // the variables of $LATEST
		}
		w.Versions["worker:live"]["Environment"].(object)["Variables"].(object)["SAMEKEY_FUNCTIONS"] = "orders:live"
		for _, task := range []string{"sweep", "count"} {
			w.Schedule(task)["Target"].(object)["Arn"] = "arn:aws:lambda:us-east-1:123456789012:function:worker:live"
		}
	},
	"an alias that nothing uses": func(w *doctortest.World, _ *doctor.Options) {
		w.Aliases = map[string][]string{"worker": {"old"}}
		w.Versions = map[string]object{"worker:old": clone(w.Function("worker"))}
		w.Versions["worker:old"]["Timeout"] = 10
		w.Versions["worker:old"]["Environment"].(object)["Variables"].(object)["SAMEKEY_APP"] = "shop"
	},
	"a worker without SAMEKEY_APP": func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Env("worker"), "SAMEKEY_APP")
	},
	"a worker without any SAMEKEY_APP": func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Env("worker"), "SAMEKEY_APP")
		delete(w.Env("orders"), "SAMEKEY_APP")
		w.Metrics[0]["Dimensions"] = []any{object{"Name": "App", "Value": "worker"}}
		for _, a := range w.Alarms {
			a["Dimensions"] = []any{object{"Name": "App", "Value": "worker"}}
		}
	},
	"filters of its namespaces": func(w *doctortest.World, _ *doctor.Options) {
		w.Env("worker")["SAMEKEY_NAMESPACES"] = "rides, shop"
		w.Mapping("stream")["FilterCriteria"] = object{"Filters": []any{
			object{"Pattern": `{"dynamodb":{"NewImage":{"pk":{"S":[{"prefix":"v1#rides#"},{"prefix":"v1#shop#"}]}}}}`},
			object{"Pattern": `{"userIdentity":{"principalId":["dynamodb.amazonaws.com"]}}`},
		}}
	},
	"an emulator that tells units of a table on demand": func(w *doctortest.World, _ *doctor.Options) {
		w.Table["ProvisionedThroughput"] = object{"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
		w.Table["GlobalSecondaryIndexes"].([]any)[0].(object)["ProvisionedThroughput"] = object{"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
	},
	"a limit of its writes": func(w *doctortest.World, _ *doctor.Options) {
		w.Table["OnDemandThroughput"] = object{"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 1000}
	},
	"no schedules of its own": func(w *doctortest.World, _ *doctor.Options) {
		delete(w.Env("worker"), "SAMEKEY_SCHEDULE_ROLE")
		w.Roles = nil
	},
	"a role for more than schedules": func(w *doctortest.World, _ *doctor.Options) {
		w.Roles["later"].Trust = `{"Statement":[{"Effect":"Allow","Principal":{"Service":["lambda.amazonaws.com","scheduler.amazonaws.com"]},"Action":["sts:TagSession","sts:*"]}]}`
	},
	"the batch before failed": func(w *doctortest.World, _ *doctor.Options) {
		w.Mapping("stream")["LastProcessingResult"] = "No records processed"
	},
	"limits": func(w *doctortest.World, o *doctor.Options) {
		w.Function("orders")["Timeout"], w.Integrations["httpapi001"][0]["timeoutInMillis"] = 300, 300000
		w.Resources["restapi001"][0]["resourceMethods"].(object)["POST"].(object)["methodIntegration"].(object)["timeoutInMillis"] = 300000
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
	},
	"drain and completer apart": func(w *doctortest.World, _ *doctor.Options) {
		other := clone(w.Mapping("stream"))
		other["UUID"] = "second"
		w.Mappings = append(w.Mappings, other)
		all := w.Mapping("stream")["FilterCriteria"].(object)["Filters"].([]any)
		w.Mapping("stream")["FilterCriteria"], other["FilterCriteria"] = object{"Filters": all[:1]}, object{"Filters": all[1:]}
	},
	"a stack with another table": func(w *doctortest.World, o *doctor.Options) {
		o.Stack, o.Table = "orders", ""
		w.Stacks["orders"] = append(w.Stacks["orders"], object{"LogicalResourceId": "Riders", "PhysicalResourceId": "riders", "ResourceType": "AWS::DynamoDB::Table"})
	},
	"a function with its alias": func(w *doctortest.World, o *doctor.Options) {
		alias(w, "orders")
		w.Env("worker")["SAMEKEY_FUNCTIONS"] = "orders:live"
		o.Functions = []string{"orders:live", "receipts", "worker"}
	},
	"a function in another language": func(w *doctortest.World, _ *doctor.Options) {
		w.Function("receipts")["Runtime"], w.Code = "python3.13", map[string][]byte{"receipts": nil}
	},
	"a function without Samekey":          other("receipts"),
	"a command of the functions' version": asked(func(o *doctor.Options) { o.Version = doctortest.Version }),
	"a function of another table":         function("other", "Environment", object{"Variables": object{"IDEM_TABLE": "decords"}}),
}

func TestSoundDeployments(t *testing.T) { still(t, soundDeployments) }

func soundDeployments(t *testing.T) {
	for name, do := range sound {
		w, opt := world(), options()
		do(w, &opt)
		if got := verdict(examine(t, w, opt)); len(got) > 0 {
			t.Errorf("%s: got %q, want nothing", name, got)
		}
	}
}

// A check is never good if AWS doesn't answer its questions.
func TestNoRightsIsNotGood(t *testing.T) { still(t, noRights) }

func noRights(t *testing.T) {
	sources := map[doctor.Source]string{
		doctor.DescribeTable: "DynamoDB.DescribeTable", doctor.DescribeTTL: "DynamoDB.DescribeTimeToLive", doctor.DescribeBackup: "DynamoDB.DescribeContinuousBackups",
		doctor.ScanTable: "DynamoDB.Scan", doctor.ServerClock: "DynamoDB.DescribeTable", doctor.Functions: "Lambda.ListFunctions", doctor.Code: "Lambda.GetFunction",
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

func TestNothingToLookAt(t *testing.T) {
	t.Parallel()
	for want, opt := range map[string]doctor.Options{
		"no table other in this account and Region": {Table: "other"},
		"which table?": {},
		"the stack broken can't be read: ValidationError: Stack with id nothing does not exist":   {Stack: "broken"},
		"the stack two has 2 tables with the logical name Table (records, records): give --table": {Stack: "two"},
		"the table records can't be read: ThrottlingException: not for tests":                     {Table: "records", As: "worker"},
		"the stack nothing can't be read: ValidationError: Stack with id nothing does not exist":  {Stack: "nothing"},
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

// A permission that the role needs and the caller lacks is a finding.
func TestRights(t *testing.T) { still(t, rightsOfRoles) }

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

// verdict returns the findings and unchecked parts of a report.
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
	"ing machine-standard tickets-reader tickets-fifo tickets-wait tickets-filters queue-visibility queue-redrive queue-receives dead-letters-kept queue-kept env-table env-app log-level completes completes-all worker-timeout gateway-timeout gateway-bytes lease asynchronous concurrency recursion retention-queue provider-keys stream-age alarms alarms-heard hooks schedules schedule-role versions: "

// ended is an account in which a call ends the examination's context.
type ended struct {
	*doctortest.World
	at  string // part of the call's target or path
	end context.CancelFunc
}

func (e ended) Do(req *http.Request) (*http.Response, error) {
	if strings.Contains(req.Header.Get("X-Amz-Target")+req.URL.Path, e.at) {
		e.end()
	}
	return e.World.Do(req)
}

// Gather returns no facts for an examination whose context has ended.
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
			continue // API Gateway has the action apigateway:GET
		}
		if service.Name == "HTTP" {
			continue // not a service
		}
		for call := range service.Type.Methods() {
			if !strings.Contains(page, "`"+call.Name+"`") && !strings.Contains(page, ":"+call.Name+"`") {
				t.Errorf("%s is not listed", call.Name)
			}
		}
	}
}
