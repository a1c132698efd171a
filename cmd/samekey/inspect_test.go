package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor/doctortest"
	"github.com/samekey/samekey/cmd/samekey/internal/names"
	"github.com/samekey/samekey/cmd/samekey/internal/stats"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/testkit/prove"
)

type object = doctortest.Object

func phase(names ...string) object {
	all := make([]any, len(names))
	for i, n := range names {
		all[i] = object{"L": []any{object{"S": n}, object{"S": "{}"}}}
	}
	return object{"L": all}
}

// crowd is a table with records of every kind.
func crowd() *doctortest.World {
	w := doctortest.Good(time.Now())
	add := func(state string, more object) {
		it := w.Record(fmt.Sprint(len(w.Items)), "orders", state, 24*time.Hour)
		maps.Copy(it, more)
		if _, kept := more["exp_s"]; kept {
			delete(it, "keep")
		}
		w.Items = append(w.Items, it)
	}
	millis := func(d time.Duration) object { return object{"N": fmt.Sprint(w.Now.Add(d).UnixMilli())} }
	add("open", object{"phases": phase("ride_created"), "lease_ms": millis(time.Minute), "route": object{"S": "POST /rides"}})
	add("open", object{"phases": phase("ride_created", "tax_added"), "route": object{"S": "POST /rides"}, "created_ms": millis(-50 * time.Hour)})
	add("open", object{"phases": phase("ride_created", "tax_added"), "route": object{"S": "POST /rides"}, "blocked": object{"BOOL": true}})
	add("open", object{"phases": phase("ride_created"), "doubts": object{"L": []any{object{"S": "tax#1"}}}, "doubt_ms": millis(-time.Hour)})
	add("stuck", object{"phases": phase("\x1b[2Jevil"), "fpk": object{"S": "2026-01"}})
	add("done", object{"fpk": object{"S": "2025-07"}})
	add("done", object{"fpk": object{"S": "2026-01"}, "exp_s": object{"N": "5"}})
	jobs := object{"M": object{"0.0": object{"M": object{"k": object{"S": "mail"}, "a": object{"S": "{}"}}}, "0.1": object{"M": object{"k": object{"S": "mail"}, "a": object{"S": "{}"}, "f": object{"S": "refused"}}}}}
	add("done", object{"keep": object{"S": "jobs"}, "jobs": jobs})
	delete(w.Items[len(w.Items)-1], "exp_s")
	w.Items = append(w.Items, object{"pk": object{"S": "v1#orders#companion#o#1"}, "v": object{"N": "1"}, "b": object{"B": "eA=="}})
	w.Table["ItemCount"], w.Table["TableSizeBytes"] = len(w.Items), 12345
	return w
}

func TestNamesAndStatsGolden(t *testing.T) {
	someAccount(t)
	for name, tt := range map[string]struct {
		args []string
		code int
	}{
		"names":              {[]string{"vet", "--open", "--lock", "../../examples/samekey.lock"}, 3},
		"stats":              {[]string{"list", "--stats", "--scan"}, 0},
		"stats-sample":       {[]string{"list", "--stats"}, 0},
		"stats-fingerprints": {[]string{"list", "--stats", "--fingerprints"}, 0},
	} {
		for form, flags := range map[string][]string{"txt": nil, "json": {"--json"}} {
			synctest.Test(t, func(t *testing.T) {
				w := crowd()
				if name == "stats-sample" {
					w.Pages, w.Table["ItemCount"] = 10, 10*len(w.Items)
				}
				code, stdout, stderr := callAt(t, w, append(append(tt.args, "--table", "records"), flags...)...)
				if code != tt.code || !onlyPlace(stderr) {
					t.Errorf("%s: code %d, %s", name, code, stderr)
				}
				golden(t, name+"."+form, stdout)
			})
		}
	}
}

// A build that fits says so, and a hundred thousand records are seen in pages.
func TestNamesAndStatsOfALargeTable(t *testing.T) {
	someAccount(t)
	synctest.Test(t, func(t *testing.T) {
		w := doctortest.Good(time.Now())
		w.Items = nil
		for range 999 {
			w.Items = append(w.Items, w.Record("1", "orders", "done", 24*time.Hour))
		}
		w.Items = append(w.Items, w.Record("2", "orders", "open", 24*time.Hour))
		pages := prove.Some(10, 100)
		many := 1000 * pages
		w.Pages, w.Table["ItemCount"] = pages, many
		code, stdout, stderr := callAt(t, w, "vet", "--open", "--table", "records", "--lock", "../../examples/samekey.lock", "--json", "--progress")
		var rep names.Report
		if err := json.Unmarshal([]byte(stdout), &rep); err != nil || code != 0 || int(rep.Seen) != many || rep.Open != pages || rep.Misfits() != 0 {
			t.Errorf("names: code %d, %v, %+v", code, err, rep)
		}
		if !strings.Contains(stderr, fmt.Sprintf(" of about %d items seen, ", many)) {
			t.Errorf("the progress is %q", stderr)
		}
		code, stdout, _ = callAt(t, w, "list", "--stats", "--table", "records", "--scan", "--json")
		var all stats.Report
		if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != 0 || int(all.Seen) != many || all.Records != many || !all.Whole {
			t.Errorf("stats: code %d, %v, %+v", code, err, all)
		}
	})
}

func TestInspectWorstInputs(t *testing.T) {
	someAccount(t)
	empty := filepath.Join(t.TempDir(), "empty.lock")
	if err := os.WriteFile(empty, []byte(`{"version":1,"packages":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const locks = "../../examples/samekey.lock"
	for _, tt := range []struct {
		args   []string
		refuse string // operation, and how
		code   int
		stderr string
	}{
		{[]string{"vet", "--open"}, "", 2, "--lock names its lock file"},
		{[]string{"vet", "--open", "--lock", empty}, "", 2, "has no handlers"},
		{[]string{"vet", "--open", "--lock", "names.go"}, "", 2, "is no lock file"},
		{[]string{"vet", "--open", "--lock", locks, "--pages", "0"}, "", 2, "--pages above 0"},
		{[]string{"vet", "--open", "--lock", locks}, "", 2, "which table?"},
		{[]string{"vet", "--open", "--lock", locks, "--table", "nothing"}, "", 1, "there is no table nothing at "},
		{[]string{"vet", "--open", "--lock", locks, "--table", "records"}, "DynamoDB.Scan AccessDeniedException", 1, "AccessDeniedException"},
		{[]string{"vet", "--open", "--lock", locks, "--table", "records"}, "DynamoDB.Scan ProvisionedThroughputExceededException", 1, "ProvisionedThroughputExceededException"},
		{[]string{"get", "--table", "records", "AAAAAAAAAAAAAAAAAAAAAAAAAA"}, "DynamoDB.Scan AccessDeniedException", 1, "AccessDeniedException"}, // not: there is none
		{[]string{"list", "--stats"}, "", 2, "which table?"},
		{[]string{"list", "--stats", "--table", "nothing"}, "", 1, "there is no table nothing at "},
		{[]string{"list", "--stats", "--table", "records", "--segments", "0"}, "", 2, "--segments"},
		{[]string{"list", "--stats", "--table", "records"}, "DynamoDB.Scan AccessDeniedException", 1, "AccessDeniedException"},
		{[]string{"list", "--stats", "--table", "records"}, "DynamoDB.Scan ThrottlingException", 1, "ThrottlingException"},
		{[]string{"tail"}, "", 2, "which table?"},
		{[]string{"tail", "--table", "nothing"}, "", 1, "there is no table nothing at "},
		{[]string{"tail", "--table", "records"}, "DynamoDB.DescribeTable AccessDeniedException", 1, "the permission dynamodb:DescribeTable"},
		{[]string{"table", "create"}, "", 2, "which table?"},
		{[]string{"table", "create", "--table", "t", "--max-write-units", "-1"}, "", 2, "--max-write-units"},
		{[]string{"table", "create", "--table", "records"}, "DynamoDB.DescribeTable AccessDeniedException", 1, "AccessDeniedException"},
		{[]string{"table", "create", "--table", "records"}, "DynamoDB.DescribeTable ThrottlingException", 1, "ThrottlingException"},
		{[]string{"table"}, "", 2, "Usage:"},
		{[]string{"table", "drop"}, "", 2, "there is no command drop"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := crowd()
			if op, code, ok := strings.Cut(tt.refuse, " "); ok {
				w.Refused[op] = code
			}
			code, stdout, stderr := callAt(t, w, tt.args...)
			if code != tt.code || !strings.Contains(stderr, tt.stderr) || stdout != "" {
				t.Errorf("%v: code %d, %q, %q", tt.args, code, stdout, stderr)
			}
		})
	}
	// A record of another layout is counted, and a build can't be said to fit it.
	synctest.Test(t, func(t *testing.T) {
		w := doctortest.Good(time.Now())
		w.Items[2]["v"] = object{"N": "3"}
		code, stdout, _ := callAt(t, w, "vet", "--open", "--table", "records", "--lock", locks)
		if code != 3 || !strings.Contains(stdout, "1 not understood") {
			t.Errorf("names: code %d, %s", code, stdout)
		}
		code, stdout, _ = callAt(t, w, "list", "--stats", "--table", "records")
		if code != 0 || !strings.Contains(stdout, "1 not understood") {
			t.Errorf("stats: code %d, %s", code, stdout)
		}
	})
}

// safeBuffer is written to and read at once.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// follow runs tail until ended. It returns its exit code.
func follow(t *testing.T, env environment, args ...string) (stdout, stderr *safeBuffer, end func() int) {
	t.Helper()
	stdout, stderr = &safeBuffer{}, &safeBuffer{}
	env.stdin, env.stdout, env.stderr = strings.NewReader(""), stdout, stderr
	if env.getenv == nil {
		env.getenv = func(string) string { return "" }
	}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- run(ctx, env, append([]string{"tail"}, args...)) }()
	return stdout, stderr, func() int { cancel(); return <-code }
}

// tail goes on through a throttled read, an expired iterator and a shard that splits, and
// ends without an error.
func TestTailSurvives(t *testing.T) {
	someAccount(t)
	synctest.Test(t, func(t *testing.T) {
		w := doctortest.Good(time.Now())
		s := &splitting{w: w}
		w.Other = s.answer
		stdout, stderr, end := follow(t, environment{http: w}, "--table", "records", "--from-start")
		time.Sleep(time.Minute) // of the bubble
		if code := end(); code != 0 {
			t.Errorf("code %d: %s", code, stderr)
		}
		golden(t, "tail.txt", stdout.String())
		if !strings.Contains(stderr.String(), "\nfollowing records\n") || !strings.Contains(stderr.String(), "it goes on") {
			t.Errorf("nothing is said about the failed reads: %q", stderr)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := doctortest.Good(time.Now())
		w.Other = (&splitting{w: w}).answer
		stdout, _, end := follow(t, environment{http: w}, "--table", "records", "--from-start", "--json")
		time.Sleep(time.Minute)
		if code := end(); code != 0 {
			t.Errorf("code %d", code)
		}
		golden(t, "tail.json", stdout.String())
	})
}

// wide is a stream of 1,750 shards, of which 250 are open, as of a table that is written
// by many. Its last shard closes after a minute and gets a child. It counts the calls.
type wide struct {
	*splitting
	begin time.Time
	calls map[string]int
}

func (s *wide) answer(op string, in object) (object, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[op]++
	over := time.Since(s.begin) > time.Minute
	switch op {
	case "DescribeStream":
		from := 0
		if after, ok := in["ExclusiveStartShardId"].(string); ok {
			_, _ = fmt.Sscanf(after, "shard-%d", &from)
			from++
		}
		var shards []any
		for i := from; i < min(from+100, 1751); i++ {
			numbers, sh := object{"StartingSequenceNumber": "1"}, object{"ShardId": fmt.Sprintf("shard-%04d", i)}
			if i < 1500 || i == 1749 && over {
				numbers["EndingSequenceNumber"] = "9"
			}
			switch {
			case i == 1750 && !over:
				continue
			case i == 1750:
				sh["ParentShardId"] = "shard-1749"
			case i >= 1500 && i < 1749:
				sh["ParentShardId"] = fmt.Sprintf("shard-%04d", i-250)
			}
			sh["SequenceNumberRange"] = numbers
			shards = append(shards, sh)
		}
		about := object{"StreamArn": in["StreamArn"], "StreamStatus": "ENABLED", "Shards": shards}
		if from+100 < 1750 {
			about["LastEvaluatedShardId"] = fmt.Sprintf("shard-%04d", from+99)
		}
		return object{"StreamDescription": about}, ""
	case "GetShardIterator":
		return object{"ShardIterator": in["ShardId"]}, ""
	case "GetRecords":
		id, _ := in["ShardIterator"].(string)
		switch {
		case id == "shard-1749" && over:
			return object{"Records": []any{s.record(1, "open")}}, "" // closed
		case id == "shard-1750":
			return object{"Records": []any{s.record(2, "done")}, "NextShardIterator": "end"}, ""
		}
		return object{"Records": []any{}, "NextShardIterator": id}, ""
	}
	return nil, "ValidationException"
}

// A stream of a large table is followed for a known price: its closed shards are not read,
// its list is asked for rarely, and its reads are bounded.
func TestTailOfALargeTable(t *testing.T) {
	someAccount(t)
	synctest.Test(t, func(t *testing.T) {
		w := doctortest.Good(time.Now())
		s := &wide{splitting: &splitting{w: w}, begin: time.Now(), calls: map[string]int{}}
		w.Other = s.answer
		stdout, stderr, end := follow(t, environment{http: w}, "--table", "records")
		time.Sleep(2 * time.Minute) // of the bubble
		if code := end(); code != 0 {
			t.Errorf("code %d: %s", code, stderr)
		}
		for op, most := range map[string]int{"DescribeStream": 18 * 13, "GetShardIterator": 251, "GetRecords": 120 * 100} {
			if n := s.calls[op]; n > most || n == 0 {
				t.Errorf("%d calls of %s in 2 minutes, at most %d", n, op, most)
			}
		}
		t.Logf("calls: %v", s.calls)
		if want := "reads 250 of 1750 shards, at most 100 times a second in all: up to $0.07 an hour"; !strings.Contains(stderr.String(), want) {
			t.Errorf("%q does not say: %s", stderr, want)
		}
		if out := stdout.String(); !strings.Contains(out, "- → open") || !strings.Contains(out, "- → done") {
			t.Errorf("printed %q", out)
		}
	})
}

func TestTailWithoutAStream(t *testing.T) {
	someAccount(t)
	w := doctortest.Good(time.Now())
	delete(w.Table, "StreamSpecification")
	code, stdout, stderr := callAt(t, w, "tail", "--table", "records")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "the table records has no stream: samekey table create turns it on") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
}

// A table without a stream, and one that may not be described, are told apart.
func TestStreamOfATable(t *testing.T) {
	t.Parallel()
	const none = "the table records has no stream: samekey table create turns it on"
	on, off := &types.StreamSpecification{StreamEnabled: aws.Bool(true)}, &types.StreamSpecification{StreamEnabled: aws.Bool(false)}
	for _, tt := range []struct {
		about *types.TableDescription
		err   string
	}{
		{nil, "the stream of table records is unknown: it takes the permission dynamodb:DescribeTable"},
		{&types.TableDescription{LatestStreamArn: aws.String("arn")}, none},
		{&types.TableDescription{LatestStreamArn: aws.String("arn"), StreamSpecification: off}, none},
		{&types.TableDescription{StreamSpecification: on}, none},
		{&types.TableDescription{LatestStreamArn: aws.String("arn"), StreamSpecification: on}, ""},
	} {
		arn, err := (&operator{table: "records", about: tt.about}).stream()
		if (arn == "arn") != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%+v: %q, %v, want %q", tt.about, arn, err, tt.err)
		}
	}
}

// record is a change of a stream: a record's first item.
func (s *splitting) record(n int, state string) object {
	it := s.w.Record(fmt.Sprint(n), "orders", state, 24*time.Hour)
	return object{"eventName": "INSERT", "dynamodb": object{
		"ApproximateCreationDateTime": float64(s.w.Now.Unix()), "SequenceNumber": fmt.Sprint(100 + n), "Keys": object{"pk": it["pk"]}, "NewImage": it,
	}}
}

// splitting is a stream whose first shard ends and has two children.
type splitting struct {
	w *doctortest.World

	mu        sync.Mutex
	throttled int
}

func (s *splitting) answer(op string, in object) (object, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shard := func(id, parent string) object {
		sh := object{"ShardId": id, "SequenceNumberRange": object{"StartingSequenceNumber": "1"}}
		if parent != "" {
			sh["ParentShardId"] = parent
		}
		return sh
	}
	record := s.record
	switch op {
	case "DescribeStream":
		return object{"StreamDescription": object{"StreamArn": in["StreamArn"], "StreamStatus": "ENABLED", "Shards": []any{
			shard("parent", ""), shard("left", "parent"), shard("right", "parent"),
		}}}, ""
	case "GetShardIterator":
		after, _ := in["SequenceNumber"].(string)
		return object{"ShardIterator": fmt.Sprint(in["ShardId"], "/", after)}, ""
	case "GetRecords":
		id, _ := in["ShardIterator"].(string)
		switch id {
		case "parent/":
			if s.throttled++; s.throttled <= 4 { // longer than the SDK's client tries
				return nil, "LimitExceededException"
			}
			return object{"Records": []any{record(1, "open")}, "NextShardIterator": "parent/expired"}, ""
		case "parent/expired":
			return nil, "ExpiredIteratorException"
		case "parent/101":
			return object{"Records": []any{record(2, "done")}}, "" // closed
		case "left/":
			return object{"Records": []any{record(3, "done")}, "NextShardIterator": "left/end"}, ""
		}
		return object{"Records": []any{}, "NextShardIterator": id}, ""
	}
	return nil, "ValidationException"
}

// tail on a database: the changes of a request, and then the end.
func TestTailOnDynamoDBLocal(t *testing.T) {
	d := newDesk(t)
	env := environment{getenv: func(name string) string {
		return map[string]string{"IDEM_TABLE": d.env["IDEM_TABLE"], "AWS_ENDPOINT_URL_DYNAMODB": os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")}[name]
	}}
	stdout, stderr, end := follow(t, env, "--from-start")
	calls := 0
	if _, err := d.pay(t.Context(), &calls); err == nil {
		t.Fatal("the call has an outcome")
	}
	waitFor(t, "the changes", func() bool { return strings.Contains(stdout.String(), "stuck") }, func() string { return stdout.String() + stderr.String() })
	if code := end(); code != 0 {
		t.Errorf("code %d: %s", code, stderr)
	}
	if out := stdout.String(); !strings.Contains(out, "POST /rides  - → open") || strings.Contains(out, "card") {
		t.Errorf("tail printed %s", out)
	}
}

// waitFor waits until something is true, with a deadline for a machine that hangs.
func waitFor(t *testing.T, what string, is func() bool, seen func() string) {
	t.Helper()
	deadline := time.After(10 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("waited for %s; seen: %s", what, seen())
		case <-tick.C:
		}
	}
}

// table create makes a table that the doctor finds good, adds what one lacks, and changes
// nothing twice.
func TestTableCreate(t *testing.T) {
	d := newDesk(t)
	table := d.env["IDEM_TABLE"] + "-made"
	create := func(typed string, args ...string) (int, string, string) {
		code, stdout, stderr := callWith(t, typed, map[string]string{"IDEM_TABLE": table}, append([]string{"table", "create"}, args...)...)
		return code, strings.ReplaceAll(stdout, table, "TABLE"), regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAllString(strings.ReplaceAll(stderr, table, "TABLE"), "ENDPOINT")
	}
	story := ""
	for _, step := range []struct {
		typed string
		args  []string
		code  int
	}{
		{"", []string{"--dry-run"}, 0},
		{"n\n", nil, 1},
		{"y\n", []string{"--no-ttl", "--no-protection"}, 0},
		{"", []string{"--no-ttl", "--no-protection"}, 0},
		{"", []string{"--yes", "--json"}, 0},
		{"", []string{"--yes"}, 0},
	} {
		code, stdout, stderr := create(step.typed, step.args...)
		if code != step.code {
			t.Errorf("%v: code %d, want %d", step.args, code, step.code)
		}
		story += fmt.Sprintf("$ samekey table create %s\n%s%s\n", strings.Join(step.args, " "), stderr, stdout)
	}
	golden(t, "table-create.txt", story)
	code, stdout, _ := call(t, map[string]string{"IDEM_TABLE": table}, "doctor", "--endpoint-url", os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
	if code != 0 || strings.Contains(stdout, "error: ") || strings.Contains(stdout, "warning: ") {
		t.Errorf("the doctor on it: code %d, %s", code, stdout)
	}
}

// A table of an earlier version gets its stream and its index.
func TestTableCreateAddsStreamAndIndex(t *testing.T) {
	d := newDesk(t)
	table := d.env["IDEM_TABLE"] + "-bare"
	client, err := dynamo.NewClient(unhurried)
	if err != nil {
		t.Fatal(err)
	}
	in := dynamo.CreateTableInput(table)
	in.GlobalSecondaryIndexes, in.StreamSpecification, in.AttributeDefinitions = nil, nil, in.AttributeDefinitions[:1]
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"IDEM_TABLE": table}
	code, stdout, stderr := call(t, env, "table", "create", "--yes")
	for _, want := range []string{"done: turn on the stream NEW_AND_OLD_IMAGES\n", "done: add the index waiting\n", "done: turn on deletion protection\n", "done: turn on TTL on exp_s\n"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("code %d, %s%s: no %q", code, stdout, stderr, want)
		}
	}
	if code, stdout, _ := call(t, env, "table", "create"); code != 0 || !strings.Contains(stdout, "as it should be") {
		t.Errorf("the second time: code %d, %s", code, stdout)
	}
}

// A table that can't be mended is told, and left alone.
func TestTableCreateOnAnotherTable(t *testing.T) {
	someAccount(t)
	synctest.Test(t, func(t *testing.T) {
		story := ""
		for _, plant := range []func(*doctortest.World){
			func(w *doctortest.World) {
				w.Table["KeySchema"] = []any{object{"AttributeName": "id", "KeyType": "HASH"}}
			},
			func(w *doctortest.World) {
				w.Table["StreamSpecification"] = object{"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}
				w.TTL["AttributeName"] = "expires"
			},
			func(w *doctortest.World) {
				w.Table["GlobalSecondaryIndexes"].([]any)[0].(object)["KeySchema"] = []any{object{"AttributeName": "pk", "KeyType": "HASH"}}
			},
		} {
			w := doctortest.Good(time.Now())
			plant(w)
			code, stdout, stderr := callAt(t, w, "table", "create", "--table", "records", "--yes")
			if code != 3 || !onlyPlace(stderr) {
				t.Errorf("code %d, %q", code, stderr)
			}
			story += stdout
		}
		golden(t, "table-differs.txt", story)
	})
}

// onlyPlace reports whether a command has said nothing beside the table's place.
func onlyPlace(stderr string) bool {
	return strings.HasPrefix(stderr, "table records") && strings.Count(stderr, "\n") == 1
}
