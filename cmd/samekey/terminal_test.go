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
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// terminal is a desk whose table is in memory, and all that its commands show.
type terminal struct {
	*testing.T
	*desk
	as    *role     // the operator's
	out   io.Writer // nil is the terminal
	slow  bool      // each answer takes a second, and progress is a line that is written over
	shown strings.Builder
}

// random is what differs from run to run, although the time doesn't: operations, requests, and
// segments in any order; the pauses before retries are random, too.
var random = regexp.MustCompile(`\b[A-Z2-7]{26}\b|RequestID: [\w-]*|segment \d|\.\d+Z\b|since [\d-]+ [\d:]+ UTC`)

// onTerminal plays at a terminal, in a bubble, and compares what was shown.
func onTerminal(t *testing.T, name string, play func(*terminal)) {
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
		golden(t, name, random.ReplaceAllString(s.shown.String(), "SOME"))
	})
}

// of has operations be of a namespace from now on.
func (s *terminal) of(namespace string) {
	s.engine = idem.New(s.store, callertest.Anybody, func(o *idem.Options) { o.Namespace, o.Logger = namespace, slog.New(slog.DiscardHandler) })
}

var inHand = regexp.MustCompile(`REF|ID|SHORT|DERIVED`)

// run runs a command, in which REF, ID, SHORT and DERIVED name the record of the customer's key.
func (s *terminal) run(args string) { s.Helper(); s.asked(strings.NewReader(""), args) }

// asked is run, with what a person types.
func (s *terminal) asked(typed io.Reader, args string) { s.Helper(); s.until(s.Context(), typed, args) }

// until is asked, and ends with ctx.
func (s *terminal) until(ctx context.Context, typed io.Reader, args string) {
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
	log.SetOutput(&stderr) // of slog's default logger, to which no command has anything to say
	defer log.SetOutput(os.Stderr)
	code := run(ctx, env, strings.Fields(words))
	fmt.Fprintf(&s.shown, "$ samekey %s\n%s%sexit code %d\n", strings.ReplaceAll(args, customersKey, "KEY"), stderr.String(), stdout.String(), code)
}

// slowly is a line that each answer needs a second for.
type slowly struct{ aws.HTTPClient }

func (s slowly) Do(req *http.Request) (*http.Response, error) {
	<-time.After(time.Second) // of the bubble
	return s.HTTPClient.Do(req)
}

// afterCalls fails an operation after so many calls.
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

// answered is an operation of a caller that is done, with these jobs.
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

// What decisions show: the change, the question, and why one is refused.
func TestDecisionsOnATerminal(t *testing.T) {
	onTerminal(t, "decisions.txt", func(s *terminal) {
		s.stuck(s.T)
		s.run("settle --key k --not-made REF")
		s.run("settle REF")
		later := idem.NewJob("mail", "x")
		later.At = time.Now().Add(time.Hour)
		s.answered("omar", "later-key", later, later)
		s.run("cancel --key later-key --scope jwt:omar --dry-run 0.1")
		for _, command := range []string{"retry", "release", "forget", "settle --not-made"} {
			s.run(command + " REF and")
		}
		s.run("cancel REF" + strings.Repeat(" 0.0", 50))
		s.run("retry --yes REF")
		s.asked(strings.NewReader("n\n"), `settle --result "ch_1" --by omar REF`)
		s.run("settle --risk-twice --dry-run --json REF")
		s.run("settle --status 410 --dry-run REF")
		s.as.set(refusingOps("AccessDeniedException", "UpdateItem"))
		s.run("settle --not-made --yes REF")
		s.as.set(nil)
		s.run("settle --not-made --yes --json --by omar REF")
		s.run("retry --yes REF")
		s.run("release --yes REF")
		s.env["USER"] = ""
		s.run("forget REF")
		s.env["USERNAME"] = "bill"
		calls := 1
		s.asked(&meanwhile{func() {
			if _, err := s.pay(s.Context(), &calls); err != nil {
				s.Error(err)
			}
		}, strings.NewReader("y\n")}, "forget --lose-work --lose-jobs REF")
		s.run("forget --lose-work --lose-jobs --yes REF")
	})
}

// What erase shows of records of all kinds, and of writes that fail.
func TestEraseOnATerminal(t *testing.T) {
	onTerminal(t, "erase.txt", func(s *terminal) {
		s.run("erase --caller jwt:jane")
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
		s.run("erase")
		s.run("erase --caller jwt:jane more")
		s.run("erase --caller jwt:jane --pages 0")
		s.run("erase --caller jwt:jane")
		s.as.set(refusingOps("AccessDeniedException", "Scan"))
		s.run("erase --caller jwt:jane --yes --segments 1")
		s.as.set(refusingOps("AccessDeniedException", "UpdateItem"))
		s.run("erase --caller jwt:jane --yes")
		s.as.set(nil)
		s.run("erase --caller jwt:jane --dry-run --json")
		s.asked(&meanwhile{func() {
			if _, err := s.engine.Forget(s.Context(), jobs.TicketFor(s.record(s.T)), "omar", idem.Loss{Work: true}); err != nil {
				s.Error(err)
			}
		}, strings.NewReader("y\n")}, "erase --caller jwt:jane")
		s.answered("jane", "one-more-key")
		s.run("erase --caller jwt:jane --yes --json")
		s.as.set(func(op string) error {
			if op == "GetItem" { // of what has no caller
				s.as.Locked(func(db *fakedynamo.DB) { db.Expire("records", db.Last("records")) })
			}
			return nil
		})
		s.run("erase --caller jwt:nobody")
		s.as.set(nil)
		s.env["USER"] = ""
		s.run("erase --caller jwt:jane")
	})
}

// Filters hand out what they match in the whole table, and say how much that is; a record
// that another hand has changed holds up none of the others.
func TestRedriveOnATerminal(t *testing.T) {
	onTerminal(t, "redrive-filters.txt", func(s *terminal) {
		s.run("redrive --all --yes")
		s.answered("jane", customersKey, idem.NewJob("mail", "x"), idem.NewJob("fax", "y"))
		s.answered("omar", "omar-key", idem.NewJob("mail", "x"))
		var waits string
		s.as.Locked(func(db *fakedynamo.DB) { waits = db.Last("records") })
		park := func() {
			s.drain(s.T, refuses(func(job jobs.Delivery) error { return errors.New("550 no such " + job.Kind) }))
		}
		park()
		time.Sleep(time.Hour) // of the bubble
		for _, args := range []string{
			"--all REF", "--all --key k", "--older -1s", "--all --by=", "--older 1h --dry-run", "--older 61m", "--dry-run ID.0.1", "--error 451", "--kind mail --dry-run --json", "--kind fax --error 550 --yes",
			"--key " + customersKey + " --scope jwt:jane --dry-run 0.1", "--dry-run REF ID.0.0",
		} {
			s.run("redrive " + args)
		}
		s.as.set(refusingOps("AccessDeniedException", "Query"))
		s.run("redrive --all --yes")
		s.as.set(refusingOps("AccessDeniedException", "GetItem"))
		s.run("redrive --all --yes")
		s.as.set(nil)
		s.asked(&meanwhile{func() {
			if _, err := s.engine.Forget(s.Context(), jobs.TicketFor(s.record(s.T)), "omar", idem.Loss{Work: true, Jobs: true}); err != nil {
				s.Error(err)
			}
		}, strings.NewReader("y\n")}, "redrive --all --json")
		s.run("redrive --all")
		park()
		s.as.set(refusingOps("AccessDeniedException", "UpdateItem"))
		s.run("redrive --all --yes")
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
		s.until(ctx, nil, "redrive --all --yes")
		s.as.set(nil)
		s.change(func(it fakedynamo.Item) { it["v"] = &types.AttributeValueMemberS{Value: "?"} })
		park()
		s.run("redrive --all --dry-run")
		s.as.set(func(op string) error {
			if op == "GetItem" {
				s.as.Locked(func(db *fakedynamo.DB) { db.Expire("records", waits) })
			}
			return nil
		})
		s.run("redrive --all --dry-run")
	})
}

// What get shows of a story with everything in it, and of one with nothing.
func TestStoriesOnATerminal(t *testing.T) {
	onTerminal(t, "stories.txt", func(s *terminal) {
		now := time.Now()
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
		for _, story := range []*records.Story{full, {Answer: &records.Answer{}, Request: &records.Request{}}, {Answer: &records.Answer{Status: 204}, Request: &records.Request{Method: "GET"}}, {}} {
			if err := (environment{stdout: &s.shown}).printStory(story); err != nil {
				s.Error(err)
			}
			s.shown.WriteString("----\n")
		}
	})
}

// A record is looked for as far as the flags let, at the price that is told.
func TestFindOnATerminal(t *testing.T) {
	onTerminal(t, "find.txt", func(s *terminal) {
		for _, args := range []string{
			"", "a b", "--scope jwt:jane", "--pages 0 x", "--segments 0 x", "--segments 1001 x", "--since -1s x", "--pages 1000 AAAAAAAA", "nonsense", "no-reference", "--key é", "v1##nobody", "--key -",
		} {
			s.run("get " + args)
		}
		s.stuck(s.T)
		s.answered("omar", "omar-key")
		s.answered("jane", "done-key")
		for _, args := range []string{
			"SHORT --no-scan", "ID --no-scan", "ID.7.7 --no-scan", "AAAAAAAAAAAAAAAAAAAAAAAAAA --no-scan", "AAAAAAAAAAAAAAAAAAAAAAAAAA --pages 1000", "AAAAAAAA --segments 1000 --pages 1000 --since 1h",
			"--key KEY --scope jwt:omar", "--key done-key --scope jane --no-scan",
		} {
			s.run("retry " + args)
		}
		delete(s.env, "IDEM_NAMESPACE")
		s.run("retry --key done-key --no-scan")
		s.asked(strings.NewReader("n\n"), "retry --key done-key")
		s.asked(strings.NewReader("y\n"), "retry --key done-key")
		s.asked(strings.NewReader("done-key\r\nmore"), "retry --key - --scope jwt:jane --namespace rides")
		s.as.set(refusingOps("AccessDeniedException", "Query"))
		s.run("retry ID")
		s.as.set(refusingOps("AccessDeniedException", "GetItem"))
		s.run("retry ID")
		s.as.set(refusingOps("AccessDeniedException", "Scan"))
		s.run("retry --segments 1 AAAAAAAAAAAAAAAAAAAAAAAAAA")
		s.as.set(nil)
		s.slow = true
		s.run("retry --segments 1 AAAAAAAA")
		s.slow = false
		s.change(func(it fakedynamo.Item) { it["v"] = &types.AttributeValueMemberS{Value: "?"} })
		s.run("get --key done-key --scope jwt:jane --namespace rides")
	})
}

// What the index no longer has is found by a scan: by its operation, its short name, a key that
// a provider got, and a customer's key in its namespace alone.
func TestScansOnATerminal(t *testing.T) {
	onTerminal(t, "scans.txt", func(s *terminal) {
		s.stuck(s.T)
		calls := 1
		s.run("retry DERIVED")
		s.run("settle --not-made --yes REF")
		if _, err := s.pay(s.Context(), &calls); err != nil {
			s.Fatal(err)
		}
		time.Sleep(2 * time.Hour) // of the bubble
		for _, args := range []string{"ID", "SHORT", "ID.0.0", "--since 1h ID", "--since 3h ID", "DERIVED", "DERIVED --service maps/route", "--no-scan ID"} {
			s.run("release " + args)
		}
		s.as.set(func(op string) error {
			if op == "Query" {
				return &smithy.GenericAPIError{Code: "ValidationException", Message: "The table does not have the specified index: waiting"}
			}
			return nil
		})
		s.run("release ID")
		s.run("list --max 0")
		s.as.set(nil)
		s.of("others")
		s.answered("omar", "omar-key")
		s.asked(strings.NewReader("y\n"), "release --key omar-key")
		s.env["IDEM_NAMESPACE"] = "others"
		s.asked(strings.NewReader("y\n"), "release --key omar-key")
		s.env["IDEM_NAMESPACE"] = ""
		s.asked(strings.NewReader("y\n"), "release --key omar-key --since 1h")
		s.run("release --key omar-key --scope jwt:omar --namespace nowhere")
	})
}

// What waits is counted whole and told by reason, place and age, as far as the flags ask.
func TestListOnATerminal(t *testing.T) {
	onTerminal(t, "list-filters.txt", func(s *terminal) {
		for _, args := range []string{"more", "--max -1", "--pages 0", "--grace -1s", "--older -1s", "--reason nonsense", "", "--json", "--scan"} {
			s.run("list " + args)
		}
		s.stuck(s.T)
		time.Sleep(time.Minute + time.Second)                     // of the bubble
		for _, key := range []string{"a-key", "b-key", "c-key"} { // one by one, which gives them an order
			s.answered("jane", key, idem.NewJob("mail", key), idem.NewJob("fax", key))
			s.drain(s.T, refuses(func(job jobs.Delivery) error { return errors.New("550 no such " + job.Kind) }))
			time.Sleep(time.Minute)
		}
		s.answered("jane", "d-key", idem.NewJob("fax", "late"))
		s.drain(s.T, refuses(func(jobs.Delivery) error { return errors.New("551 too late") }))
		time.Sleep(time.Hour)
		for _, args := range []string{
			"", "--each", "--max 1", "--max 0", "--each --max 2 --json", "--older 62m", "--older 2h", "--route /other", "--reason stuck", "--reason stuck,undelivered", "--scan --reason stuck", "--scan --reason unknown", "--scan --grace 1h",
		} {
			s.run("list " + args)
		}
		s.as.set(refusingOps("AccessDeniedException", "Query"))
		s.run("list")
		s.as.set(refusingOps("AccessDeniedException", "Scan"))
		s.run("list --max 1")
		s.run("list --scan --json")
	})
}

// A list that ends early says so, and shows what it has got; a slow one shows how far it is.
func TestListThatEndsEarly(t *testing.T) {
	onTerminal(t, "list-early.txt", func(s *terminal) {
		ctx, cancel := context.WithCancel(s.Context())
		s.as.set(func(string) error { cancel(); return nil })
		s.until(ctx, nil, "list --scan")
		s.as.set(nil)
		ctx, cancel = context.WithTimeout(s.Context(), 3*time.Second)
		defer cancel()
		s.until(ctx, nil, "list --scan --pages 0.5")
		s.slow = true
		s.run("list --scan --pages 2")
		s.slow = false
		s.stuck(s.T)
		var one fakedynamo.Item
		s.change(func(it fakedynamo.Item) { one = it })
		for i := range 26 { // in the same partition of the index
			next := maps.Clone(one)
			next["wait_ms"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().UnixMilli()-int64(i), 10)}
			s.put(fmt.Sprintf("v1#rides#%02d", i), next)
		}
		const partitions = 8 // of a reason
		s.as.set(afterCalls(partitions, "Query", refusingOps("AccessDeniedException")("Query")))
		s.run("list --reason unknown")
		s.as.set(nil)
		s.slow = true
		s.run("list --reason unknown")
	})
}

// An answer of people is one that a handler could give; each flag says one thing alone.
func TestSettlements(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	const one = "give one of --answer, --result, --not-made and --risk-twice: the others contradict it"
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
		"199":                {settling{status: 199}, nil, "--answer 199: 200 to 599"},
		"600":                {settling{status: 600}, nil, "--answer 600: 200 to 599"},
		"-1":                 {settling{status: -1}, nil, "--answer -1: 200 to 599"},
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

// full is a disk that takes nothing more.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A command that can't print what it has done doesn't end as if it had.
func TestOutputsThatFail(t *testing.T) {
	onTerminal(t, "full.txt", func(s *terminal) {
		s.stuck(s.T)
		s.answered("omar", "omar-key", idem.NewJob("mail", "x"))
		s.drain(s.T, refuses(func(jobs.Delivery) error { return errors.New("550") }))
		s.out = full{}
		for _, args := range []string{
			"get REF", "list", "list --stats", "vet --open --lock ../../examples/samekey.lock", "redrive --all --dry-run --json", "redrive --all --yes", "settle --not-made --yes REF", "erase --caller jwt:jane --yes",
		} {
			s.run(args)
		}
		for _, args := range []string{"get REF", "list", "list --stats", "list --fingerprints", "vet --open --lock ../../examples/samekey.lock", "forget --lose-work --lose-jobs --yes REF", "erase --caller jwt:jane --yes"} {
			s.run(args + " --json")
		}
		once := strings.ReplaceAll(s.shown.String(), "\n  no space left", "") // not for each line
		s.shown.Reset()
		s.shown.WriteString(once)
	})
}

// A stuck operation is opened, and erasing reads no record of another caller.
func TestMoreOnATerminal(t *testing.T) {
	onTerminal(t, "more.txt", func(s *terminal) {
		if _, err := s.engine.Do(s.Context(), request(), func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return idem.Response{}, errors.Join(err, errTimeout)
		}); err == nil {
			s.Fatal("answered")
		}
		if err := s.engine.MarkStuck(s.Context(), jobs.TicketFor(s.record(s.T)), "the bank is gone"); err != nil {
			s.Fatal(err)
		}
		s.run("retry --json --yes REF")
		s.answered("omar", "omar-key")
		s.as.set(refusingOps("AccessDeniedException", "GetItem"))
		s.run("erase --caller jwt:jane --dry-run")
		s.run("erase --caller jwt:omar --dry-run")
	})
}

// What is sealed is said to be, and erased, settled and opened with the keys alone, which the
// program is asked for in the account of the flags.
func TestSealedOnATerminal(t *testing.T) {
	onTerminal(t, "sealed.txt", func(s *terminal) {
		config := filepath.Join(s.TempDir(), "config")
		write(s.T, config, []byte("[profile shop]\nregion = eu-west-1\naws_access_key_id = SHOP\naws_secret_access_key = s\n"))
		s.Setenv("AWS_CONFIG_FILE", config)
		s.answered("jane", "plain-key")
		s.keysFrom(s.T, "denied")
		s.run("erase --caller jwt:jane --yes")
		delete(s.env, "SAMEKEY_KEYS_FROM")
		s.sealed(s.T)
		s.stuck(s.T)
		s.run("forget --lose-work --lose-jobs --dry-run REF")
		s.run("settle --answer 410 --yes REF")
		s.run("erase --caller jwt:jane --yes")
		s.answered("jane", customersKey+"-2")
		s.run("erase --caller jwt:jane --yes")
		s.run("erase --caller jwt:jane --yes --json")
		s.as.set(refusingOps("AccessDeniedException", "GetItem"))
		s.run("erase --caller jwt:jane --yes")
		s.as.set(nil)
		s.keysFrom(s.T, "account")
		s.run("forget --lose-work --lose-jobs --dry-run REF")
		s.run("forget --lose-work --lose-jobs --dry-run --region eu-west-1 --profile shop REF")
		s.answered("omar", "omar-key")
		s.keysFrom(s.T, "allowed")
		s.run("erase --caller jwt:jane --yes")
		s.run("erase --caller jwt:nobody --yes --json")
		s.env["SAMEKEY_KEYS_FROM"] = "there-is-no-such-program with arguments"
		s.run("get REF")
	})
}

// A table with others' items is no table on which nothing waits; what a sweep writes about
// itself is neither.
func TestOthersItemsOnATerminal(t *testing.T) {
	onTerminal(t, "others.txt", func(s *terminal) {
		s.run("list --table a!b")
		s.run("list --endpoint-url http://127.0.0.1:9")
		s.put("samekey#sweep#", fakedynamo.Item{"v": &types.AttributeValueMemberN{Value: "1"}})
		s.run("list")
		s.put("a customer", fakedynamo.Item{})
		for _, args := range []string{"list", "redrive --all", "erase --caller jwt:jane", "get AAAAAAAA", "list --stats"} {
			s.run(args)
		}
		s.as.set(refusingOps("AccessDeniedException", "Scan"))
		s.run("list")
		s.as.set(afterCalls(0, "Scan", errors.New("reset")))
		s.run("list")
		s.answered("jane", "a-key")
		s.as.set(afterCalls(1, "Scan", errors.New("reset")))
		s.run("erase --caller jwt:jane --segments 1 --dry-run")
		s.as.set(nil)
		s.put("samekey", fakedynamo.Item{"v": &types.AttributeValueMemberN{Value: "1"}}) // a record, whatever its key is
		s.run("list")
	})
}

// The progress of a scan is a line a second, or one that is written over.
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
