package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/cmd/samekey/internal/ui"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/leaktest"
	"github.com/samekey/samekey/seal"
	"github.com/samekey/samekey/seal/program"
)

// With this variable, the test's binary is the program of --keys-from.
// The value names what the program does.
const envKeys = "SAMEKEY_TEST_KEYS"

func playKeys(play string) int {
	if play == "denied" {
		_ = program.Refuse(os.Stdout, errors.New("AccessDeniedException: not authorized to perform kms:Decrypt"))
		return 0
	}
	if play == "account" {
		_ = program.Refuse(os.Stdout, fmt.Errorf("not in %q as %q of %s", os.Getenv("AWS_REGION"), os.Getenv("AWS_PROFILE"), os.Getenv("IDEM_TABLE")))
		return 0
	}
	if table := os.Getenv("IDEM_TABLE"); !strings.HasPrefix(table, "desk-") && table != "records" {
		fmt.Fprintf(os.Stderr, "the table is %q\n", table)
		return 1
	}
	if err := program.Serve(context.Background(), deskKeys(), os.Stdin, os.Stdout); err != nil {
		return 1
	}
	return 0
}

func deskKeys() seal.Provider {
	key := sha256.Sum256([]byte("the desk's"))
	p, err := seal.NewStatic("desk", map[string][]byte{"desk": key[:]})
	if err != nil {
		panic(err)
	}
	return p
}

// sealed makes the application encrypt from now on.
func (d *desk) sealed(t *testing.T) {
	t.Helper()
	s, err := dynamo.New(d.client, d.env["IDEM_TABLE"], func(o *dynamo.Options) { o.Seal = seal.New(deskKeys()) })
	if err != nil {
		t.Fatal(err)
	}
	d.store, d.engine = s, idem.New(s, callertest.Anybody, func(o *idem.Options) { o.Namespace = "rides" })
}

// keysFrom gives the commands a program for data keys.
func (d *desk) keysFrom(t *testing.T, play string) {
	t.Helper()
	t.Setenv(envKeys, play)
	d.env["SAMEKEY_KEYS_FROM"] = os.Args[0]
}

func (d *desk) items(t *testing.T) []map[string]types.AttributeValue {
	t.Helper()
	table := d.env["IDEM_TABLE"]
	out, err := d.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	return out.Items
}

var values = cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{},
	types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberBOOL{})

// Without the permission on the keys, the commands show everything that isn't
// sealed, say what is sealed, and make every decision that needs no contents.
func TestSealedRecordsWithoutPermission(t *testing.T) {
	for name, begin := range map[string]func(d *desk){
		"no keys": func(*desk) {},
		"denied":  func(d *desk) { d.keysFrom(t, "denied") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.sealed(t)
			begin(d)
			rec := d.stuck(t)
			out := d.ok(t, "get", "--data", rec.PK)
			for _, want := range []string{"sealed     no data key", "stuck", "charge_created", "POST /rides"} {
				if !strings.Contains(out, want) {
					t.Errorf("get doesn't say %q:\n%s", want, out)
				}
			}
			if name == "denied" && !strings.Contains(out, "AccessDeniedException") {
				t.Errorf("get doesn't say why:\n%s", out)
			}
			var s records.Story
			if err := json.Unmarshal([]byte(d.ok(t, "get", "--json", "--data", rec.PK)), &s); err != nil || !strings.HasPrefix(s.Sealed, "no data key") || s.Scope != "" {
				t.Errorf("as JSON: %+v, %v", s, err)
			}
			for _, args := range [][]string{{"list"}, {"list", "--scan", "--pages", "1000"}, {"list", "--stats"}, {"get", "--pages", "1000", rec.ID}} {
				if out := d.ok(t, args...); strings.Contains(out, "corrupt") || strings.Contains(out, "1 unreadable") {
					t.Errorf("%v: %s", args, out)
				}
			}
			before := d.items(t)
			for _, what := range []string{"--answer=201", `--result="ch_1"`, "--not-made"} {
				d.fails(t, 1, "sealed: no data key", "settle", "--yes", what, rec.PK)
			}
			if diff := cmp.Diff(before, d.items(t), values); diff != "" {
				t.Errorf("refused decisions have written (-before +after):\n%s", diff)
			}
			d.ok(t, "forget", "--yes", "--lose-work", "--lose-jobs", rec.PK)

			if _, err := d.engine.Do(t.Context(), request(), func(context.Context) (idem.Response, error) {
				return idem.Response{Status: 201, Body: []byte("secret answer")}, nil
			}); err != nil {
				t.Fatal(err)
			}
			if out := d.ok(t, "get", "--data", rec.PK); !strings.Contains(out, "Answer: sealed.") || !strings.Contains(out, "retries get a sealed answer") {
				t.Errorf("of an answer, get says:\n%s", out)
			}
		})
	}
}

// With the permission, the commands read and settle sealed records like plain records.
func TestSealedRecordsWithPermission(t *testing.T) {
	d := newDesk(t)
	d.sealed(t)
	d.keysFrom(t, "allowed")
	rec := d.stuck(t)
	if out := d.ok(t, "get", "--data", rec.PK); !strings.Contains(out, "secret ride") || !strings.Contains(out, "secret address") || !strings.Contains(out, "jwt:jane") {
		t.Errorf("get shows no contents:\n%s", out)
	}
	d.ok(t, "settle", "--yes", "--answer=201", "--body", `{"secret":"settled"}`, rec.PK)
	if r := d.record(t); r.Response == nil || string(r.Response.Body) != `{"secret":"settled"}` || string(r.Phases[0].Result) != "" && string(r.Phases[0].Result) != `"secret ride"` {
		t.Errorf("the record is %+v", r)
	}
	if found := leaktest.Find(leaktest.Texts(d.items(t)), "secret", "jwt:jane"); len(found) != 0 {
		t.Errorf("the settled record has %q", found)
	}
	d.env["SAMEKEY_KEYS_FROM"] = "there-is-no-such-program"
	d.fails(t, 2, "--keys-from there-is-no-such-program", "get", rec.PK)
}

// An answer to an unsealed record is sealed with a new data key. Without
// a data key, nothing is written.
func TestSettlingAPlainRecordNeedsADataKey(t *testing.T) {
	d := newDesk(t)
	rec := d.stuck(t)
	d.keysFrom(t, "denied")
	before := d.items(t)
	d.fails(t, 1, "sealed: no data key", "settle", "--yes", "--answer=201", rec.PK)
	if diff := cmp.Diff(before, d.items(t), values); diff != "" {
		t.Errorf("a refused answer was written (-before +after):\n%s", diff)
	}
	d.keysFrom(t, "allowed")
	d.ok(t, "settle", "--yes", "--answer=201", rec.PK)
}

// The page says that contents are sealed, and refuses to store an answer.
func TestPageOfSealedRecords(t *testing.T) {
	d := newDesk(t)
	d.sealed(t)
	rec := d.stuck(t)
	page := func(s *seal.Sealer) *ui.Table {
		t.Helper()
		p, err := ui.NewTable(d.client, d.env["IDEM_TABLE"], ui.TableOptions{By: "jane", Namespace: "rides", Seal: s})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	shown := func(p *ui.Table) (*ui.Story, string) {
		t.Helper()
		story, err := p.Story(t.Context(), rec.PK, true)
		if err != nil {
			t.Fatal(err)
		}
		if row, found, err := p.Row(t.Context(), rec.PK); !found || err != nil || row.State != "stuck" {
			t.Errorf("the row is %+v, %v", row, err)
		}
		js, _ := json.Marshal(story)
		return story, string(js)
	}
	closed := page(nil)
	story, text := shown(closed)
	if strings.Contains(text, "secret") || strings.Contains(text, "corrupt") || len(story.Said) != 2 || !strings.HasPrefix(story.Said[1], "The record is sealed, and the page has no data key") {
		t.Errorf("without keys, the page shows %s", text)
	}
	before := d.items(t)
	settle := ui.Action{Do: "settle", PK: rec.PK, Seen: story.Seen, By: "jane", Status: 201}
	if said, err := closed.Act(t.Context(), settle); !errors.Is(err, ui.ErrRefused) || !strings.Contains(err.Error(), "The record is sealed, and the page has no data key") {
		t.Errorf("without keys, settling says %q, %v", said, err)
	}
	if diff := cmp.Diff(before, d.items(t), values); diff != "" {
		t.Errorf("a refused answer was written (-before +after):\n%s", diff)
	}
	open := page(seal.New(deskKeys()))
	if story, text := shown(open); !strings.Contains(text, "secret ride") || len(story.Said) != 1 {
		t.Errorf("with keys, the page shows %s", text)
	}
	if said, err := open.Act(t.Context(), settle); err != nil {
		t.Errorf("with keys, settling says %q, %v", said, err)
	}
}
