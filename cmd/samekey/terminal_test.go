package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// shown is a command, its exit code and a part of what it shows.
type shown struct {
	args string
	code int
	want string
}

// terminal is a desk with a table in memory.
type terminal struct {
	*testing.T
	*desk
	as   *role     // the operator's role
	out  io.Writer // nil: the terminal
	slow bool      // each answer takes a second, and a command overwrites its line of progress
}

// random matches what differs from run to run although the time is the same: ids
// of operations and requests, the order of segments, and pauses before retries.
var random = regexp.MustCompile(`\b[A-Z2-7]{26}\b|RequestID: [\w-]*|segment \d|\.\d+Z\b|since [\d-]+ [\d:]+ UTC`)

// onTerminal runs play with a terminal, in a bubble of synctest.
func onTerminal(t *testing.T, play func(*terminal)) {
	t.Helper()
	someAccount(t)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	synctest.Test(t, func(t *testing.T) {
		as := &role{Server: &fakedynamo.Server{}}
		client, err := dynamo.NewClient(func(o *dynamodb.Options) { o.HTTPClient = as.Server })
		if err != nil {
			t.Fatal(err)
		}
		store, err := dynamo.New(client, "records")
		if err != nil {
			t.Fatal(err)
		}
		s := &terminal{T: t, as: as, desk: &desk{client: client, store: store, env: map[string]string{"IDEM_TABLE": "records", "IDEM_NAMESPACE": "rides", "USER": "jane"}}}
		s.of("rides")
		play(s)
	})
}

// of sets the namespace of the next operations.
func (s *terminal) of(namespace string) {
	s.engine = idem.New(s.store, callertest.Anybody, func(o *idem.Options) { o.Namespace, o.Logger = namespace, slog.New(slog.DiscardHandler) })
}

var inHand = regexp.MustCompile(`REF|ID|SHORT|DERIVED`)

// run runs a command, and checks its exit code and parts of its output. In
// args, REF, ID, SHORT and DERIVED stand for names of the customer's record.
func (s *terminal) run(args string, code int, want ...string) {
	s.Helper()
	s.asked(strings.NewReader(""), args, code, want...)
}

// asked is run with standard input.
func (s *terminal) asked(typed io.Reader, args string, code int, want ...string) {
	s.Helper()
	s.until(s.Context(), typed, args, code, want...)
}

// until is asked with a context that may end.
func (s *terminal) until(ctx context.Context, typed io.Reader, args string, code int, want ...string) {
	s.Helper()
	words := args
	if inHand.MatchString(args) {
		rec := s.record(s.T)
		words = strings.NewReplacer("REF", rec.PK, "DERIVED", strings.Join(s.keys[:min(1, len(s.keys))], ""), "ID", rec.ID, "SHORT", redact.Record(rec.PK)).Replace(args)
	}
	var stdout, stderr strings.Builder
	out := s.out
	if out == nil {
		out = &stdout
	}
	env := environment{stdin: typed, stdout: out, stderr: &stderr, http: s.as, getenv: func(name string) string { return s.env[name] }}
	if s.slow {
		env.http, env.terminal = slowly{s.as}, true
	}
	log.SetOutput(&stderr) // the output of slog's default logger; commands write nothing to it
	defer log.SetOutput(os.Stderr)
	if got := run(ctx, env, strings.Fields(words)); got != code {
		s.Errorf("samekey %s: exit code %d, want %d", args, got, code)
	}
	says(s.T, "samekey "+args, random.ReplaceAllString(stderr.String()+stdout.String(), "SOME"), want...)
}

// slowly delays each answer by a second.
type slowly struct{ aws.HTTPClient }

func (s slowly) Do(req *http.Request) (*http.Response, error) {
	<-time.After(time.Second) // the bubble's time
	return s.HTTPClient.Do(req)
}

// afterCalls fails an operation after n calls.
func afterCalls(n int64, op string, err error) func(string) error {
	var calls atomic.Int64
	return func(got string) error {
		if got == op && calls.Add(1) > n {
			return err
		}
		return nil
	}
}

// put writes an item.
func (s *terminal) put(pk string, it fakedynamo.Item) {
	s.Helper()
	it["pk"] = &types.AttributeValueMemberS{Value: pk}
	s.as.Locked(func(db *fakedynamo.DB) {
		if _, err := db.PutItem(s.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: it}); err != nil {
			s.Error(err)
		}
	})
}

// answered makes a finished operation of a caller, with these jobs.
func (s *terminal) answered(caller, key string, staged ...idem.Job) {
	s.Helper()
	if _, err := s.engine.Do(s.Context(), of(caller, key), func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Body: []byte("secret of " + caller)}, idem.Stage(ctx, staged...)
	}); err != nil {
		s.Fatal(err)
	}
}

// change changes the newest item of the table.
func (s *terminal) change(change func(fakedynamo.Item)) {
	s.as.Locked(func(db *fakedynamo.DB) { change(db.Item("records", db.Last("records"))) })
}

// A decision shows the change and the question, or the reason for a refusal.
func TestDecisionsOnATerminal(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		s.stuck(s.T)
		s.run("settle --key k --not-made REF", 2, "give REF or --key, not both")
		s.run("settle REF", 2, "give exactly one of --answer, --result, --not-made, --risk-twice and --ask")
		later := idem.NewJob("mail", "x")
		later.At = time.Now().Add(time.Hour)
		s.answered("omar", "later-key", later, later)
		s.run("cancel --key later-key --scope jwt:omar --dry-run 0.1", 0,
			"Done: retries get 201. 2 jobs are undelivered.",
			"The delivery of these jobs has not begun. They are removed and never delivered:",
			".0.1 mail, for 2000-01-01 01:00:00 UTC")
		for _, c := range []shown{
			{"retry", 2, `too many arguments, from "and" on; usage: samekey retry {REF | --key KEY [--scope SCOPE]} [FLAGS]`},
			{"release", 2, `too many arguments, from "and" on; usage: samekey release {REF | --key KEY [--scope SCOPE]} [FLAGS]`},
			{"forget", 2, `too many arguments, from "and" on; usage: samekey forget {REF | --key KEY [--scope SCOPE]} [FLAGS]`},
			{"settle --not-made", 2, `too many arguments, from "and" on; usage: samekey settle {REF | --key KEY [--scope SCOPE]} {--answer`},
		} {
			s.run(c.args+" REF and", c.code, c.want)
		}
		s.run("cancel REF"+strings.Repeat(" 0.0", 50), 2,
			`too many arguments, from "0.0" on; usage: samekey cancel {REF | --key KEY --scope SCOPE} [JOB...]`)
		s.run("retry --yes REF", 1,
			`the call of phase "charge_created" is in doubt: give its result as JSON, or say that it`)
		s.asked(strings.NewReader("n\n"), `settle --result "ch_1" --by omar REF`, 1, "not confirmed: nothing was changed (--yes skips the question)")
		s.run("settle --risk-twice --dry-run --json REF", 0,
			`Stuck, and waits for people: the outcome of phase "charge_created" is unknown: timeout.`,
			`The call of phase "charge_created" may have been made. The call is made once more, and may have its`,
			"The operation becomes open: only the client's next retry with the same key continues the operation, since the request is not")
		s.run("settle --answer 410 --dry-run REF", 0,
			"The operation (POST /rides) ends: the client gets 410 from now on, with this body of 0 bytes:",
			"The answer is replayed until 2000-01-02 00:00:00 UTC, or longer while jobs are undelivered; a later")
		s.as.set(refusingOps("AccessDeniedException", "UpdateItem"))
		s.run("settle --not-made --yes REF", 1,
			"idem: settle 1quBvEzc: store is unavailable: dynamo: commit: the store refuses the call: operation")
		s.as.set(nil)
		s.run("settle --not-made --yes --json --by omar REF", 0,
			`The call of phase "charge_created" had no effect. The call is made once more.`,
			"The operation becomes open: only the client's next retry with the same key continues the operation, since the request is not",
			`"done": "open: only the client's next retry with the same key continues the operation, since the request is not`)
		s.run("retry --yes REF", 1,
			"the operation is not stuck: only the client's next retry with the same key continues the operation, since the request is")
		s.run("release --yes REF", 1, "no attempt holds the record")
		s.env["USER"] = ""
		s.run("forget REF", 2, "no name of the person who decides: set --by or USER; the name is stored in the record")
		s.env["USERNAME"] = "bill"
		calls := 1
		s.asked(&meanwhile{func() {
			if _, err := s.pay(s.Context(), &calls); err != nil {
				s.Error(err)
			}
		}, strings.NewReader("y\n")}, "forget --lose-work --lose-jobs REF", 1,
			"idem: forget 1quBvEzc: the record has moved on: somebody has written it since it was read;")
		s.run("forget --lose-work --lose-jobs --yes REF", 0,
			"the answer 201: a retry runs the request AGAIN, under other derived keys (--lose-work)",
			`1 undelivered jobs, of the kinds ["mail"] (--lose-jobs); a drain may have delivered 1 of them, or`,
			", by bill; the jobs are removed, but a late drain may still deliver them:")
	})
}

// erase handles records of all kinds, and writes that fail.
func TestEraseOnATerminal(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		s.run("erase --caller jwt:jane", 3, "no record of jwt:jane; records compared: 0")
		s.answered("jane", "kept-key", idem.NewJob("mail", "x"))
		s.answered("jane", "over-key")
		s.change(func(it fakedynamo.Item) { it["exp_s"] = &types.AttributeValueMemberN{Value: "5"} })
		s.answered("omar", "omar-key")
		s.of("others")
		s.answered("jane", "another-key")
		s.of("rides")
		s.answered("jane", "unreadable-key")
		s.change(func(it fakedynamo.Item) { it["v"] = &types.AttributeValueMemberS{Value: "?"} })
		s.answered("jane", customersKey)
		s.run("erase", 2, "no caller: give --caller SCOPE, as samekey get prints the scope")
		s.run("erase --caller jwt:jane more", 2, `unexpected argument "more"; usage: samekey erase --caller SCOPE [FLAGS]`)
		s.run("erase --caller jwt:jane --pages 0", 2, "--segments must be 1 to 1000, and --pages above 0")
		s.run("erase --caller jwt:jane", 1, "not confirmed: nothing was changed (--yes skips the question)")
		s.as.set(refusingOps("AccessDeniedException", "Scan"))
		s.run("erase --caller jwt:jane --yes --segments 1", 1,
			"of 1: operation error DynamoDB: Scan, https response error StatusCode: 400,")
		s.as.set(refusingOps("AccessDeniedException", "UpdateItem"))
		s.run("erase --caller jwt:jane --yes", 1,
			"idem: erase oFjsr4Rb: store is unavailable: dynamo: commit: the store refuses the call: operation")
		s.as.set(nil)
		s.run("erase --caller jwt:jane --dry-run --json", 3,
			"Records to erase: 3. Their keys stay in use until the records expire; retries get",
			`": "the record has undelivered jobs"`,
			`"unreadable": 1,`)
		s.asked(&meanwhile{func() {
			if _, err := s.engine.Forget(s.Context(), state.TicketFor(s.record(s.T)), "omar", idem.Loss{Work: true}); err != nil {
				s.Error(err)
			}
		}, strings.NewReader("y\n")}, "erase --caller jwt:jane", 3, "Records to erase: 3. Their keys stay in use until the records expire; retries get", "the record has changed since the search: erase again", "1 records may belong to this caller, but were not erased, because this version can't read them")
		s.answered("jane", "one-more-key")
		s.run("erase --caller jwt:jane --yes --json", 3,
			"Records to erase: 2. Their keys stay in use until the records expire; retries get",
			"2 of jwt:jane",
			`"jwt:jane": 2`)
		s.as.set(func(op string) error {
			if op == "GetItem" { // the read of an item without a caller
				s.as.Locked(func(db *fakedynamo.DB) { db.Expire("records", db.Last("records")) })
			}
			return nil
		})
		s.run("erase --caller jwt:nobody", 3, "erased: 0")
		s.as.set(nil)
		s.env["USER"] = ""
		s.run("erase --caller jwt:jane", 2, "no name of the person who decides: set --by or USER; the name is stored in the records")
	})
}

// A redrive with filters selects jobs in the whole table, and prints their
// number. A record that changed meanwhile doesn't delay the other records.
func TestRedriveOnATerminal(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		s.run("redrive --all --yes", 3, "no parked job matches")
		s.answered("jane", customersKey, idem.NewJob("mail", "x"), idem.NewJob("fax", "y"))
		s.answered("omar", "omar-key", idem.NewJob("mail", "x"))
		var waits string
		s.as.Locked(func(db *fakedynamo.DB) { waits = db.Last("records") })
		park := func() {
			s.drain(s.T, refuses(func(job jobs.Delivery) error { return errors.New("550 no such " + job.Kind) }))
		}
		park()
		time.Sleep(time.Hour) // the bubble's time
		for _, c := range []shown{
			{"--all REF", 2, "with --all or a filter, set --by or USER, name no record, and give no negative --older"},
			{"--all --key k", 2, "with --all or a filter, set --by or USER, name no record, and give no negative --older"},
			{"--older -1s", 2, "with --all or a filter, set --by or USER, name no record, and give no negative --older"},
			{"--all --by=", 2, "with --all or a filter, set --by or USER, name no record, and give no negative --older"},
			{"--older 1h --dry-run", 0, "Jobs to redrive: 3, of 2 records (fax 1, mail 2). Their failures are counted from zero"},
			{"--older 61m", 3, "no parked job matches"},
			{"--dry-run ID.0.1", 0, "Jobs to redrive: 1. Their failures are counted from zero again."},
			{"--error 451", 3, "no parked job matches"},
			{"--kind mail --dry-run --json", 0, `"jobs": 2,`},
			{"--kind fax --error 550 --yes", 0, "jobs redriven: 1; the drain delivers them from the table's stream"},
			{"--key " + customersKey + " --scope jwt:jane --dry-run 0.1", 1, "nothing to redrive: the record has no parked job, or none of the named jobs is parked"},
			{"--dry-run REF ID.0.0", 0, "Done: retries get 201. 2 jobs are undelivered, 1 of them parked."},
		} {
			s.run("redrive "+c.args, c.code, c.want)
		}
		s.as.set(refusingOps("AccessDeniedException", "Query"))
		s.run("redrive --all --yes", 1,
			"dynamo: waiting: the store refuses the call: operation error DynamoDB: Query, https response error")
		s.as.set(refusingOps("AccessDeniedException", "GetItem"))
		s.run("redrive --all --yes", 1,
			"dynamo: load: the store refuses the call: operation error DynamoDB: GetItem, https response error")
		s.as.set(nil)
		s.asked(&meanwhile{func() {
			if _, err := s.engine.Forget(s.Context(), state.TicketFor(s.record(s.T)), "omar", idem.Loss{Work: true, Jobs: true}); err != nil {
				s.Error(err)
			}
		}, strings.NewReader("y\n")}, "redrive --all --json", 1, `"jobs": 1,`, ": the record has moved on: the job is no longer parked")
		s.run("redrive --all", 3, "no parked job matches")
		park()
		again := func() { s.run("redrive --all --yes --by omar", 0, "jobs redriven: 1;") }
		s.asked(&meanwhile{again, strings.NewReader("y\n")}, "redrive --all", 1, ": the record has moved on: the job is no longer parked")
		park()
		s.as.set(refusingOps("AccessDeniedException", "UpdateItem"))
		s.run("redrive --all --yes", 1,
			"v1#rides#s8DH_j7ibsUKMr8GC1zAttJGlNGgYgAzLZR7pdagufo: dynamo: redrive: the store refuses the call:")
		s.as.set(nil)
		s.answered("jane", "last-key", idem.NewJob("mail", "x"))
		park()
		ctx, cancel := context.WithCancel(s.Context())
		s.as.set(func(op string) error {
			if op == "UpdateItem" {
				cancel()
			}
			return refusingOps("AccessDeniedException", "UpdateItem")(op)
		})
		s.until(ctx, nil, "redrive --all --yes", 1, "v1#rides#s8DH_j7ibsUKMr8GC1zAttJGlNGgYgAzLZR7pdagufo: dynamo: redrive: the store refuses the call:")
		s.as.set(nil)
		s.change(func(it fakedynamo.Item) { it["v"] = &types.AttributeValueMemberS{Value: "?"} })
		park()
		s.run("redrive --all --dry-run", 1,
			"record v1#rides#S-zhuc2Gir857oXRVYrN8enSS8gxXndam4RQyveVntM was skipped: dynamo: record is corrupt: v")
		s.as.set(func(op string) error {
			if op == "GetItem" {
				s.as.Locked(func(db *fakedynamo.DB) { db.Expire("records", waits) })
			}
			return nil
		})
		s.run("redrive --all --dry-run", 1,
			"record v1#rides#S-zhuc2Gir857oXRVYrN8enSS8gxXndam4RQyveVntM was skipped: dynamo: record is corrupt: v")
	})
}

// get prints a story with all parts, and a story with none.
func TestPrintStory(t *testing.T) {
	t.Parallel()
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	full := &records.Story{
		Facts: []records.Fact{{Label: "Record", Value: "v1#rides#h"}, {Label: "Tenant"}}, State: "stuck", Claimed: now, Sealed: "no permission", Summary: "Waits for people.",
		Attempts: []records.Attempt{{By: "client", Began: now, Function: "rides", End: "died", Error: "gone", Note: "beside an error"}, {By: "retry", End: "stuck", Note: "a guess"}},
		Phases: []records.Phase{
			{Name: "ride", Committed: now, TookMS: 1, Result: json.RawMessage(`{"id":1}`)},
			{Name: "tax"},
			{Name: "mail", Unknown: true, Result: json.RawMessage(`0`)},
			{Name: "charge", Unknown: true, Reads: `"TEXT"`},
		},
		Calls:     []records.Call{{Service: "maps", Step: "route", Number: 1, Key: "k1", State: "recorded", Since: now}, {Service: "bank", Number: 2, Key: "k2", State: "in doubt"}},
		CallsNote: "one is missing",
		Jobs:      []records.Job{{ID: "O.0.0", Kind: "mail", Phase: "ride", State: "later", At: now, Tries: 3, Error: "550", Args: json.RawMessage(`"x"`)}, {ID: "O.0.1", State: "parked"}},
		Answer:    &records.Answer{Status: 201, Bytes: 7, Stored: "in the record", Header: http.Header{"Accept": {"a", "b"}}, Body: "a ride"},
		Request:   &records.Request{Method: "POST", Path: "/rides", Query: "a=b", Body: "a body"},
		Decisions: []records.Decision{{By: "omar", At: now, What: "retry", From: "stuck", To: "open"}},
		Cost:      records.Cost{Writes: 3, Bytes: 1500, Units: 6}, Next: []records.Next{{When: now, Who: "time", What: "it expires"}, {Who: "people", What: "retry", Command: "samekey retry"}},
	}
	for name, tt := range map[string]struct {
		story *records.Story
		want  []string
	}{
		"everything": {full, []string{
			"record  v1#rides#h\nclaimed  2000-01-01 00:00:00.000 UTC\nstate  stuck\nsealed  no permission\n\nWaits for people.\n",
			"1  client  2000-01-01 00:00:00.000  rides  died  gone\n", "2  retry  unknown  stuck  a guess\n",
			`ride  2000-01-01 00:00:00.000  1ms  {"id":1}`, "tax  unknown  unknown", "mail  unknown  unknown  OUTCOME UNKNOWN: the call may have been made\n", `made; the program expects a result like "TEXT"`,
			"maps, route  k1  recorded  2000-01-01 00:00:00.000", "bank #2  k2  in doubt  unknown", "\nCalls: one is missing.\n",
			`O.0.0  mail  ride  later, 2000-01-01 00:00:00.000  3  550  "x"`, "O.0.1  parked  0",
			"Answer: 201, 7 bytes in the record.\n  Accept: a, b\n  a ride\n", "completer: POST /rides?a=b\n  a body\n", "2000-01-01 00:00:00.000  omar  retry  stuck  open",
			"3 writes; about 6 write units for a record of about 1500 bytes.", "2000-01-01 00:00:00.000  time  it expires", "any time  people  retry  samekey retry",
		}},
		"sealed":      {&records.Story{Answer: &records.Answer{}, Request: &records.Request{}}, []string{"Answer: sealed.", "completer: sealed\n"}},
		"empty parts": {&records.Story{Answer: &records.Answer{Status: 204}, Request: &records.Request{Method: "GET"}}, []string{"Answer: 204, 0 bytes", "completer: GET\n"}},
		"nothing":     {&records.Story{}, []string{"claimed  unknown UTC\n\n\n\nCost so far: 0 writes; about 0 write units for a record of about 0 bytes.\n"}},
	} {
		var out strings.Builder
		if err := (environment{stdout: &out}).printStory(tt.story); err != nil {
			t.Error(err)
		}
		says(t, name, out.String(), tt.want...)
	}
}

// The search for a record goes as far as the flags permit, and a scan prints its cost first.
func TestFindOnATerminal(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		for _, c := range []shown{
			{"", 2, "no record is named: give REF or --key KEY"},
			{"a b", 2, `too many arguments, from "b" on; usage: samekey get {REF | --key KEY [--scope SCOPE]} [FLAGS]`},
			{"--scope jwt:jane", 2, "--scope needs --key"},
			{"--pages 0 x", 2, "--pages must be above 0, --segments 1 to 1000, and --since not negative"},
			{"--segments 0 x", 2, "--pages must be above 0, --segments 1 to 1000, and --since not negative"},
			{"--segments 1001 x", 2, "--pages must be above 0, --segments 1 to 1000, and --since not negative"},
			{"--since -1s x", 2, "--pages must be above 0, --segments 1 to 1000, and --since not negative"},
			{"--pages 1000 AAAAAAAA", 3, "no record matches: all records were compared"},
			{"nonsense", 3, "no record matches: all records were compared"},
			{"no-reference", 2, `"no-reference" is not a partition key, a short name, a derived key, or the id of an operation or a job`},
			{"--key é", 2, "idem: key: idempotency key is invalid: byte 1 is not visible ASCII"},
			{"v1##nobody", 3, "no record v1##nobody"},
			{"--key -", 2, "no key on standard input: EOF"},
		} {
			s.run("get "+c.args, c.code, c.want)
		}
		s.stuck(s.T)
		s.answered("omar", "omar-key")
		s.answered("jane", "done-key")
		for _, c := range []shown{
			{"SHORT --no-scan", 1, `the call of phase "charge_created" is in doubt: give its result as JSON, or say that it`},
			{"ID --no-scan", 1, `the call of phase "charge_created" is in doubt: give its result as JSON, or say that it`},
			{"ID.7.7 --no-scan", 1, `the call of phase "charge_created" is in doubt: give its result as JSON, or say that it`},
			{"AAAAAAAAAAAAAAAAAAAAAAAAAA --no-scan", 1, "not found in the index of waiting operations, and --no-scan prevents"},
			{"AAAAAAAAAAAAAAAAAAAAAAAAAA --pages 1000", 3, "no record matches: all records were compared"},
			{"AAAAAAAA --segments 1000 --pages 1000 --since 1h", 3, "no record matches: all records"},
			{"--key KEY --scope jwt:omar", 1, "the table was not scanned, so the key may have a record that was not found"},
			{"--key done-key --scope jane --no-scan", 1, "the operation is done, not stuck, so its answer can't be changed; to deliver its parked jobs again, use samekey redrive"},
		} {
			s.run("retry "+c.args, c.code, c.want)
		}
		delete(s.env, "IDEM_NAMESPACE")
		s.run("retry --key done-key --no-scan", 1,
			"not found in the index of waiting operations, and --no-scan prevents")
		s.asked(strings.NewReader("n\n"), "retry --key done-key", 1, "the table was not scanned, so the key may have a record that was not found")
		s.asked(strings.NewReader("y\n"), "retry --key done-key", 1, "the operation is done, not stuck, so its answer can't be changed; to deliver its parked jobs again, use samekey redrive")
		s.asked(strings.NewReader("done-key\r\nmore"), "retry --key - --scope jwt:jane --namespace rides", 1, "the operation is done, not stuck, so its answer can't be changed; to deliver its parked jobs again, use samekey redrive")
		s.as.set(refusingOps("AccessDeniedException", "Query"))
		s.run("retry ID", 1, "dynamo: waiting: the store refuses the call: operation error DynamoDB: Query, https response error")
		s.as.set(refusingOps("AccessDeniedException", "GetItem"))
		s.run("retry ID", 1, "dynamo: load: the store refuses the call: operation error DynamoDB: GetItem, https response error")
		s.as.set(refusingOps("AccessDeniedException", "Scan"))
		s.run("retry --segments 1 AAAAAAAAAAAAAAAAAAAAAAAAAA", 1,
			"of 1: operation error DynamoDB: Scan, https response error StatusCode: 400,")
		s.as.set(nil)
		s.slow = true
		s.run("retry --segments 1 AAAAAAAA", 3, "no record matches: all records were compared")
		s.slow = false
		s.change(func(it fakedynamo.Item) { it["v"] = &types.AttributeValueMemberS{Value: "?"} })
		s.run("get --key done-key --scope jwt:jane --namespace rides", 1,
			"dynamo: record is corrupt: v has type *types.AttributeValueMemberS")
	})
}

// A scan finds a record that has left the index: by operation, short
// name, a provider's key, or the customer's key, in one namespace.
func TestScansOnATerminal(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		s.stuck(s.T)
		calls := 1
		s.run("retry DERIVED", 1,
			`the call of phase "charge_created" is in doubt: give its result as JSON, or say that it`)
		s.run("settle --not-made --yes REF", 0,
			"The operation becomes open: only the client's next retry with the same key continues the operation, since the request is not",
			"open: only the client's next retry with the same key continues the operation, since the request is not stored")
		if _, err := s.pay(s.Context(), &calls); err != nil {
			s.Fatal(err)
		}
		time.Sleep(2 * time.Hour) // the bubble's time
		for _, c := range []shown{
			{"ID", 1, "no attempt holds the record"},
			{"SHORT", 1, "no attempt holds the record"},
			{"ID.0.0", 1, "no attempt holds the record"},
			{"--since 1h ID", 3, "no record matches: all records"},
			{"--since 3h ID", 1, "no attempt holds the record"},
			{"DERIVED", 1, "no attempt holds the record"},
			{"DERIVED --service maps/route", 1, "no attempt holds the record"},
			{"--no-scan ID", 1, "not found in the index of waiting operations, and --no-scan prevents"},
		} {
			s.run("release "+c.args, c.code, c.want)
		}
		s.as.set(func(op string) error {
			if op == "Query" {
				return &smithy.GenericAPIError{Code: "ValidationException", Message: "The table does not have the specified index: waiting"}
			}
			return nil
		})
		s.run("release ID", 1, "no attempt holds the record")
		s.run("list --max 0", 0,
			"table records has no index \"waiting\": scanning the whole table",
			"undelivered: 1; 1 items seen")
		s.as.set(nil)
		s.of("others")
		s.answered("omar", "omar-key")
		s.asked(strings.NewReader("y\n"), "release --key omar-key", 1, "no attempt holds the record")
		s.env["IDEM_NAMESPACE"] = "others"
		s.asked(strings.NewReader("y\n"), "release --key omar-key", 1, "no attempt holds the record")
		s.env["IDEM_NAMESPACE"] = ""
		s.asked(strings.NewReader("y\n"), "release --key omar-key --since 1h", 1, "no attempt holds the record")
		s.run("release --key omar-key --scope jwt:omar --namespace nowhere", 1,
			"the table was not scanned, so the key may have a record that was not found")
	})
}

// list counts all entries, and groups them by reason, place and age, as the flags say.
func TestListOnATerminal(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		for _, c := range []shown{
			{"more", 2, `unexpected argument "more"; usage: samekey list [FLAGS]`},
			{"--max -1", 2, "--pages must be above 0; --max, --grace and --older must not be negative"},
			{"--pages 0", 2, "--pages must be above 0; --max, --grace and --older must not be negative"},
			{"--grace -1s", 2, "--pages must be above 0; --max, --grace and --older must not be negative"},
			{"--older -1s", 2, "--pages must be above 0; --max, --grace and --older must not be negative"},
			{"--reason nonsense", 2, "--reason nonsense needs --scan: the index never has entries with this reason"},
			{"", 0, "nothing waits for people"},
			{"--json", 0, `"by_reason": {},`},
			{"--scan", 0, "nothing waits for people; 0 items seen"},
		} {
			s.run("list "+c.args, c.code, c.want)
		}
		s.stuck(s.T)
		time.Sleep(time.Minute + time.Second)                     // the bubble's time
		for _, key := range []string{"a-key", "b-key", "c-key"} { // one by one, for a fixed order
			s.answered("jane", key, idem.NewJob("mail", key), idem.NewJob("fax", key))
			s.drain(s.T, refuses(func(job jobs.Delivery) error { return errors.New("550 no such " + job.Kind) }))
			time.Sleep(time.Minute)
		}
		s.answered("jane", "d-key", idem.NewJob("fax", "late"))
		s.drain(s.T, refuses(func(jobs.Delivery) error { return errors.New("551 too late") }))
		time.Sleep(time.Hour)
		for _, c := range []shown{
			{"", 0, "parked  3  1h3m0s  1  POST /rides  job mail"},
			{"--each", 0, "parked  1  1h1m0s  1  POST /rides  job"},
			{"--max 1", 0, "unknown  1  1h4m1s  0  POST /rides  charge_created"},
			{"--max 0", 0, "parked: 4; unknown: 1"},
			{"--each --max 2 --json", 0, `"last_err": "550 no such mail",`},
			{"--older 62m", 0, "parked  2  1h3m0s  1  POST /rides  job mail"},
			{"--older 2h", 0, "none of the 5 entries matches the flags"},
			{"--route /other", 0, "none of the 5 entries matches the flags"},
			{"--reason stuck", 0, "none of the 5 entries matches the flags"},
			{"--reason stuck,undelivered", 2, "--reason undelivered needs --scan: the index never has entries with this reason"},
			{"--scan --reason stuck", 0, "none of the 9 entries matches the flags; 6 items seen"},
			{"--scan --reason unknown", 0, "unknown: 1; 6 items seen"},
			{"--scan --grace 1h", 0, "parked  4  1h3m5s  1  POST /rides  job fax"},
		} {
			s.run("list "+c.args, c.code, c.want)
		}
		s.as.set(refusingOps("AccessDeniedException", "Query"))
		s.run("list", 1, "dynamo: waiting: the store refuses the call: operation error DynamoDB: Query, https response error")
		s.as.set(refusingOps("AccessDeniedException", "Scan"))
		s.run("list --max 1", 0, "unknown  1  1h4m6s  0  POST /rides  charge_created")
		s.run("list --scan --json", 1, "of 8: operation error DynamoDB: Scan, https response error StatusCode: 400,")
	})
}

// A list that ends early prints its entries and says that it is
// incomplete. A slow list shows its progress.
func TestListThatEndsEarly(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		ctx, cancel := context.WithCancel(s.Context())
		s.as.set(func(string) error { cancel(); return nil })
		s.until(ctx, nil, "list --scan", 1, "context canceled")
		s.as.set(nil)
		ctx, cancel = context.WithTimeout(s.Context(), 3*time.Second)
		defer cancel()
		s.until(ctx, nil, "list --scan --pages 0.5", 1, "the scan stopped before the table's end")
		s.slow = true
		s.run("list --scan --pages 2", 0, "0 items seen, 0/s", "0 items seen, 0/s", "[Knothing waits for people; 0 items seen")
		s.slow = false
		s.stuck(s.T)
		var one fakedynamo.Item
		s.change(func(it fakedynamo.Item) { one = it })
		for i := range 26 { // all in one partition of the index
			next := maps.Clone(one)
			next["wait_ms"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().UnixMilli()-int64(i), 10)}
			s.put(fmt.Sprintf("v1#rides#%02d", i), next)
		}
		const partitions = 8 // partitions of a reason
		s.as.set(afterCalls(partitions, "Query", refusingOps("AccessDeniedException")("Query")))
		s.run("list --reason unknown", 1,
			"dynamo: waiting: the store refuses the call: operation error DynamoDB: Query, https response error")
		s.as.set(nil)
		s.slow = true
		s.run("list --reason unknown", 0,
			"1 entries read, 0/s",
			"25 entries read, 5/s",
			`unknown  27  6s  0  POST /rides  charge_created  v1#rides#25  the outcome of phase "charge_created"`)
	})
}

// settle accepts only an answer that a handler could give, and only one kind of decision.
func TestSettlements(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	const one = "give exactly one of --answer, --result, --not-made, --risk-twice and --ask"
	html := http.Header{"Content-Type": {"text/html"}}
	for name, tt := range map[string]struct {
		given settling
		want  *idem.Response
		err   string
	}{
		"nothing":            {settling{}, nil, one},
		"answer and result":  {settling{status: 200, result: "1"}, nil, one},
		"result, not made":   {settling{result: "1", notMade: true}, nil, one},
		"not made, or twice": {settling{notMade: true, riskTwice: true}, nil, one},
		"not made":           {settling{notMade: true}, nil, ""},
		"risk twice":         {settling{riskTwice: true}, nil, ""},
		"a result":           {settling{result: "1"}, nil, ""},
		"no JSON":            {settling{result: "ch_1"}, nil, `--result ch_1 is not JSON (a string needs quotes: --result '"ch_1"')`},
		"199":                {settling{status: 199}, nil, "--answer is 199: give a status from 200 to 599"},
		"600":                {settling{status: 600}, nil, "--answer is 600: give a status from 200 to 599"},
		"-1":                 {settling{status: -1}, nil, "--answer is -1: give a status from 200 to 599"},
		"200":                {settling{status: 200, contentType: "text/html"}, &idem.Response{Status: 200, Body: []byte{}}, ""},
		"599 with a body":    {settling{status: 599, body: "gone", contentType: "text/html"}, &idem.Response{Status: 599, Body: []byte("gone"), Header: html}, ""},
		"one byte":           {settling{status: 400, body: "g", contentType: "text/html"}, &idem.Response{Status: 400, Body: []byte("g"), Header: html}, ""},
		"a file's":           {settling{status: 410, bodyFile: file, contentType: "text/html"}, &idem.Response{Status: 410, Body: []byte("from a file"), Header: html}, ""},
	} {
		err := tt.given.check()
		if diff := cmp.Diff(tt.want, tt.given.answer); diff != "" || err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %v, want %q (-want +got):\n%s", name, err, tt.err, diff)
		}
	}
}

// full is a writer on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A command whose output can't be written fails.
func TestOutputsThatFail(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		s.stuck(s.T)
		s.answered("omar", "omar-key", idem.NewJob("mail", "x"))
		s.drain(s.T, refuses(func(jobs.Delivery) error { return errors.New("550") }))
		s.out = full{}
		for _, c := range []shown{
			{"get REF", 1, "no space left"},
			{"list", 1, "no space left"},
			{"list --stats", 1, "no space left"},
			{"vet --open --lock ../../examples/samekey.lock", 1, "no space left"},
			{"redrive --all --dry-run --json", 1, "no space left"},
			{"redrive --all --yes", 1, "no space left"},
			{"settle --not-made --yes REF", 1, "no space left"},
			{"erase --caller jwt:jane --yes", 1, "no space left"},
		} {
			s.run(c.args, c.code, c.want)
		}
		for _, c := range []shown{
			{"get REF", 1, "no space left"},
			{"list", 1, "no space left"},
			{"list --stats", 1, "no space left"},
			{"list --fingerprints", 1, "no space left"},
			{"vet --open --lock ../../examples/samekey.lock", 1, "no space left"},
			{"forget --lose-work --lose-jobs --yes REF", 1, "no space left"},
			{"erase --caller jwt:jane --yes", 1, "no space left"},
		} {
			s.run(c.args+" --json", c.code, c.want)
		}
	})
}

// retry opens a stuck operation, and erase loads no record of another caller.
func TestMoreOnATerminal(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		if _, err := s.engine.Do(s.Context(), request(), func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return idem.Response{}, errors.Join(err, errTimeout)
		}); err == nil {
			s.Fatal("answered")
		}
		if err := s.engine.MarkStuck(s.Context(), state.TicketFor(s.record(s.T)), "the bank is gone"); err != nil {
			s.Fatal(err)
		}
		s.run("retry --json --yes REF", 0,
			"Stuck, and waits for people: the bank is gone.",
			"The operation becomes open: only the client's next retry with the same key continues the operation, since the request is not",
			`"done": "open: only the client's next retry with the same key continues the operation, since the request is not`)
		s.answered("omar", "omar-key")
		s.as.set(refusingOps("AccessDeniedException", "GetItem"))
		s.run("erase --caller jwt:jane --dry-run", 3, "the operation is not finished")
		s.run("erase --caller jwt:omar --dry-run", 0,
			"Records to erase: 1. Their keys stay in use until the records expire; retries get",
			"1 of jwt:omar")
	})
}

// Commands say what is sealed. They erase, settle and open it only with the
// keys, which the program of --keys-from gets from the account of the flags.
func TestSealedOnATerminal(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		config := filepath.Join(s.TempDir(), "config")
		write(s.T, config, []byte("[profile shop]\nregion = eu-west-1\naws_access_key_id = SHOP\naws_secret_access_key = s\n"))
		s.Setenv("AWS_CONFIG_FILE", config)
		s.answered("jane", "plain-key")
		s.keysFrom(s.T, "denied")
		s.run("erase --caller jwt:jane --yes", 1,
			"sealed: no data key: the program of --keys-from failed: idem: erase seRJV7_S:")
		delete(s.env, "SAMEKEY_KEYS_FROM")
		s.sealed(s.T)
		s.stuck(s.T)
		s.run("forget --lose-work --lose-jobs --dry-run REF", 0,
			"sealed: no data key: set --keys-from to a program that has the keys",
			`the work: phases ["ride_created" "charge_created"], and calls that may have been made. A request`,
			`1 undelivered jobs, of the kinds ["mail"] (--lose-jobs); a drain may have delivered 1 of them, or`)
		s.run("settle --answer 410 --yes REF", 1,
			"sealed: no data key: set --keys-from to a program that has the keys; nothing")
		s.run("erase --caller jwt:jane --yes", 3,
			"Records to erase: 1. Their keys stay in use until the records expire; retries get",
			"1 of jwt:jane",
			"1 sealed records may belong to this caller, but were not erased: no data key:")
		s.answered("jane", customersKey+"-2")
		s.run("erase --caller jwt:jane --yes", 3,
			"2 sealed records may belong to this caller, but were not erased: no data key:")
		s.run("erase --caller jwt:jane --yes --json", 3, `"left": {},`, `"sealed": 2,`, `"callers": {}`)
		s.as.set(refusingOps("AccessDeniedException", "GetItem"))
		s.run("erase --caller jwt:jane --yes", 1,
			"dynamo: load: the store refuses the call: operation error DynamoDB: GetItem, https response error")
		s.as.set(nil)
		s.keysFrom(s.T, "account")
		s.run("forget --lose-work --lose-jobs --dry-run REF", 0,
			"sealed: no data key: the program of --keys-from failed: dynamo: the record's",
			`the work: phases ["ride_created" "charge_created"], and calls that may have been made. A request`,
			`1 undelivered jobs, of the kinds ["mail"] (--lose-jobs); a drain may have delivered 1 of them, or`)
		s.run("forget --lose-work --lose-jobs --dry-run --region eu-west-1 --profile shop REF", 0,
			"sealed: no data key: the program of --keys-from failed: dynamo: the record's",
			`the work: phases ["ride_created" "charge_created"], and calls that may have been made. A request`,
			`1 undelivered jobs, of the kinds ["mail"] (--lose-jobs); a drain may have delivered 1 of them, or`)
		s.answered("omar", "omar-key")
		s.keysFrom(s.T, "allowed")
		s.run("erase --caller jwt:jane --yes", 3,
			"Records to erase: 1. Their keys stay in use until the records expire; retries get")
		s.run("erase --caller jwt:nobody --yes --json", 3, "no record of jwt:nobody; records compared: 2")
		s.env["SAMEKEY_KEYS_FROM"] = "there-is-no-such-program with arguments"
		s.run("get REF", 2, "--keys-from there-is-no-such-program with arguments: program: New: exec:")
	})
}

// A command never reports that nothing waits on a table with foreign
// items only, or with a sweep's own items only.
func TestOthersItemsOnATerminal(t *testing.T) {
	onTerminal(t, func(s *terminal) {
		s.run("list --table a!b", 2, `dynamo: New: "a!b" is not the name or ARN of a table`)
		s.run("list --endpoint-url http://127.0.0.1:9", 0, "nothing waits for people")
		s.put("samekey#sweep#", fakedynamo.Item{"v": &types.AttributeValueMemberN{Value: "1"}})
		s.run("list", 0, "nothing waits for people")
		s.put("a customer", fakedynamo.Item{})
		for _, c := range []shown{
			{"list", 1, "none of the first 2 items is a Samekey record: is this the right table? table records,"},
			{"redrive --all", 1, "none of the first 2 items is a Samekey record: is this the right table? table records,"},
			{"erase --caller jwt:jane", 1, "none of the first 2 items is a Samekey record: is this the right table? table records,"},
			{"get AAAAAAAA", 1, "none of the first 2 items is a Samekey record: is this the right table? table records,"},
			{"list --stats", 1, "none of the first 2 items is a Samekey record: is this the right table? table records,"},
		} {
			s.run(c.args, c.code, c.want)
		}
		s.as.set(refusingOps("AccessDeniedException", "Scan"))
		s.run("list", 0, "can't tell whether the table has Samekey records: AccessDeniedException")
		s.as.set(afterCalls(0, "Scan", errors.New("reset")))
		s.run("list", 0, "can't tell whether the table has Samekey records: no answer")
		s.answered("jane", "a-key")
		s.as.set(afterCalls(1, "Scan", errors.New("reset")))
		s.run("erase --caller jwt:jane --segments 1 --dry-run", 0,
			"Records to erase: 1. Their keys stay in use until the records expire; retries get")
		s.as.set(nil)
		s.put("samekey", fakedynamo.Item{"v": &types.AttributeValueMemberN{Value: "1"}}) // a record by its layout, whatever its key
		s.run("list", 0, "nothing waits for people")
	})
}

// Progress takes a line a second, or overwrites a single line.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		p    progress
		want string
	}{
		"lines":    {progress{wanted: true}, "20 of about 100 things, 20/s\n60 things, 24/s\n70 of about 70 things, 20/s\n"},
		"a line":   {progress{wanted: true, line: true}, "\r20 of about 100 things, 20/s\x1b[K\r60 things, 24/s\x1b[K\r70 of about 70 things, 20/s\x1b[K\r\x1b[K"},
		"unwanted": {progress{line: true}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			p := tt.p
			p.w = &out
			p.start("things")
			for _, at := range []struct {
				after    time.Duration
				n, total int64
			}{{time.Second - 1, 10, 100}, {1, 20, 100}, {time.Second / 2, 30, 100}, {time.Second, 60, 0}, {time.Second, 70, 1}} {
				time.Sleep(at.after)
				p.at(at.n, at.total)
			}
			p.end()
			p.end()
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}
