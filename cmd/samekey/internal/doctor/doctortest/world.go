package doctortest

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/metrictable"
)

//go:embed good.json
var good []byte

// Object is a JSON object in an answer of AWS.
type Object = map[string]any

// World is the content of an account. The fields are AWS's answers, without paging.
type World struct {
	Table, TTL, Backups Object
	Items               []Object
	Functions, Mappings []Object
	Aliases             map[string][]string // aliases of functions
	Versions            map[string]Object   // configurations of aliases such as orders:live; other aliases have the function's configuration
	Code                map[string][]byte   // zip files of functions, and of aliases such as orders:live; functions and aliases without an entry share one zip file
	Concurrency         map[string]int
	EventInvokes        map[string]Object   // configurations of asynchronous invocations
	RecursiveLoop       string              // every function's RecursiveLoop; "" is Terminate
	Policies            map[string]string   // policies of functions, and of aliases such as orders:live
	Integrations        map[string][]Object // of HTTP APIs
	Resources           map[string][]Object // of REST APIs
	BinaryMediaTypes    map[string][]string // of REST APIs
	Queues              map[string]map[string]string
	Buses               map[string]string // ARNs of buses, by the name or ARN in the request
	Machines            map[string]Object // state machines, by their ARNs
	Roles               map[string]*Role  // by their names
	Alarms              []Object
	Metrics             []Object
	Schedules           []Object // answers of GetSchedule
	Stacks              map[string][]Object

	// Refused has the error codes of the operations that fail, by names such as
	// "Lambda.ListFunctions".
	Refused map[string]string
	// Now is the time of the answers.
	Now time.Time
	// Pages is the number of pages of a scan, to imitate a large table; 0 means one.
	// Each page has all items.
	Pages int
}

// Role is a role of IAM.
type Role struct {
	ARN, Trust string // Trust is the role's trust policy
	// Allowed lists the resources that the role may use, for any action.
	Allowed []string
}

// Good returns a deployment without mistakes. The argument now is the time of AWS's answers.
func Good(now time.Time) *World {
	w := &World{Refused: make(map[string]string), Now: now}
	if err := json.Unmarshal(good, w); err != nil {
		panic(err)
	}
	table := dynamo.CreateTableInput("records")
	indexes, types := make([]any, 0, len(table.GlobalSecondaryIndexes)), make([]any, 0, len(table.AttributeDefinitions))
	for _, d := range table.AttributeDefinitions {
		types = append(types, Object{"AttributeName": aws.ToString(d.AttributeName), "AttributeType": string(d.AttributeType)})
	}
	w.Table["AttributeDefinitions"] = types
	for _, g := range table.GlobalSecondaryIndexes {
		var keys, others []any
		for _, k := range g.KeySchema {
			keys = append(keys, Object{"AttributeName": aws.ToString(k.AttributeName), "KeyType": string(k.KeyType)})
		}
		for _, name := range g.Projection.NonKeyAttributes {
			others = append(others, name)
		}
		indexes = append(indexes, Object{
			"IndexName": aws.ToString(g.IndexName), "IndexStatus": "ACTIVE", "KeySchema": keys,
			"Projection": Object{"ProjectionType": string(g.Projection.ProjectionType), "NonKeyAttributes": others},
		})
	}
	if len(indexes) > 0 {
		w.Table["GlobalSecondaryIndexes"] = indexes
	}
	for _, m := range metrictable.All() {
		w.Alarms = append(w.Alarms, Object{
			"AlarmName": "orders-" + m.Name, "Namespace": metrictable.Namespace, "MetricName": m.Name, "ActionsEnabled": true,
			"AlarmActions": []any{"arn:aws:sns:us-east-1:123456789012:on-call"}, "Dimensions": []any{Object{"Name": "App", "Value": "orders"}},
		})
	}
	w.Metrics = []Object{{"Namespace": metrictable.Namespace, "MetricName": "Requests", "Dimensions": []any{Object{"Name": "App", "Value": "orders"}}}}
	w.Items = append(w.Items,
		w.Record("1", "orders", "done", 24*time.Hour),
		w.Record("2", "receipts", "done", 28*24*time.Hour),
		w.Record("3", "orders", "open", 24*time.Hour))
	return w
}

// Record returns an item for the table: the record of a function's request. If state is
// "done", the request is finished, and retention is how long its record is kept. Otherwise,
// the request is open and resumable.
func (w *World) Record(name, function, state string, retention time.Duration) Object {
	text := func(s string) Object { return Object{"S": s} }
	number := func(n int64) Object { return Object{"N": strconv.FormatInt(n, 10)} }
	run := w.Now.Add(-time.Hour)
	it := Object{
		"pk": text("v1#orders#" + name + "00000000000000000000000000000000000000000x"), "v": number(1), "st": text(state),
		"owner": text("o" + name), "ver": number(2), "lease_ms": number(0), "fp": text("f"), "id": text("i" + name), "jobs": Object{"M": Object{}},
		"created_ms": number(run.UnixMilli()), "run_ms": number(run.UnixMilli()), "fn": text(function), "route": text("POST /orders"),
	}
	if state == "done" {
		it["resp"] = Object{"M": Object{"s": number(201)}}
		it["exp_s"] = number(run.Add(retention).Unix() + 1)
		return it
	}
	it["keep"] = text("open")
	it["req"] = Object{"M": Object{"m": text("POST"), "p": text("/orders")}}
	return it
}

// Function returns the function with this name, so that a test can change it.
func (w *World) Function(name string) Object { return find(w.Functions, "FunctionName", name) }

// Env returns a function's variables, so that a test can change them.
func (w *World) Env(name string) Object {
	return w.Function(name)["Environment"].(Object)["Variables"].(Object)
}

// Mapping returns the event source mapping with this UUID, so that a test can change it.
func (w *World) Mapping(uuid string) Object { return find(w.Mappings, "UUID", uuid) }

// Schedule returns the worker's schedule for a task, so that a test can change it.
func (w *World) Schedule(task string) Object { return find(w.Schedules, "Name", "worker-"+task) }

func find(all []Object, field, value string) Object {
	for _, o := range all {
		if o[field] == value {
			return o
		}
	}
	panic("there is no " + value)
}
