package main

import (
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
)

// onEveryTable returns commands that report on a whole table.
func onEveryTable() [][]string {
	return [][]string{
		{"list"},
		{"list", "--json"},
		{"list", "--scan", "--pages", "1000"},
		{"list", "--stats", "--pages", "1000"},
		{"list", "--stats", "--scan", "--pages", "1000", "--json"},
		{"erase", "--caller", "jwt:jane", "--yes"},
		{"get", "--pages", "1000", "AAAAAAAAAAAAAAAAAAAAAAAAAA"},
		{"forget", "--pages", "1000", "--yes", "AAAAAAAA"},
	}
}

// A command never reports that nothing waits if the table isn't
// Samekey's: whether the key is another, or only the items are.
func TestTableOfAnother(t *testing.T) {
	d := newDesk(t)
	for name, in := range map[string]*dynamodb.CreateTableInput{
		"of another layout": {
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeN}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}}, BillingMode: types.BillingModePayPerRequest,
		},
		"with the same key and index": dynamo.CreateTableInput(""),
	} {
		t.Run(name, func(t *testing.T) {
			table := "another-" + rand.Text()
			in.TableName = &table
			if _, err := d.client.CreateTable(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			d.env["IDEM_TABLE"] = table
			for _, args := range onEveryTable() {
				if code, _, stderr := call(t, d.env, args...); (code != 0 && code != 3) != (name == "of another layout") || strings.Contains(stderr, "is this the right table") != (name == "of another layout") {
					t.Errorf("%v of an empty table: code %d, %s", args, code, stderr)
				}
			}
			for _, it := range []map[string]types.AttributeValue{
				{"id": &types.AttributeValueMemberN{Value: "7"}, "pk": &types.AttributeValueMemberS{Value: "customer 7"}, "st": &types.AttributeValueMemberS{Value: "open"}},
				{"id": &types.AttributeValueMemberN{Value: "8"}, "pk": &types.AttributeValueMemberS{Value: "customer 8"}},
				{"id": &types.AttributeValueMemberN{Value: "9"}, "pk": &types.AttributeValueMemberS{Value: "samekey#sweep#"}, "v": &types.AttributeValueMemberN{Value: "1"}}, // an item of a sweep
			} {
				if _, err := d.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range onEveryTable() {
				if code, stdout, stderr := call(t, d.env, args...); code != 1 || stdout != "" || !strings.Contains(stderr, "is this the right table? table "+table) || strings.Contains(stderr, "nothing waits") {
					t.Errorf("%v: code %d, %q, %q", args, code, stdout, stderr)
				}
			}
		})
	}
}

// Every command first names its table, also before a question. A missing
// table takes one sentence.
func TestEveryCommandNamesItsTable(t *testing.T) {
	d := newDesk(t)
	rec := d.stuck(t)
	table := d.env["IDEM_TABLE"]
	for _, args := range append(everyCommand(), onEveryTable()...) {
		_, _, stderr := call(t, d.env, args...)
		if !strings.HasPrefix(stderr, "table "+table+" at http://") {
			t.Errorf("%v: %s", args, stderr)
		}
	}
	_, _, stderr := call(t, d.env, "settle", "--not-made", rec.PK)
	if !strings.Contains(stderr, "The change is in table "+table+" at http://") || strings.Index(stderr, "This is in") > strings.Index(stderr, "Go on?") {
		t.Errorf("asked %s", stderr)
	}
	d.env["IDEM_TABLE"] = "missing"
	for _, args := range append(everyCommand(), onEveryTable()...) {
		code, stdout, stderr := call(t, d.env, args...)
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "no table missing at ") {
			t.Errorf("%v: code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// The account is the table's own. Without permission to describe the
// table, the account is unknown, and the command continues.
func TestAccountOfTheTable(t *testing.T) {
	bareAWS(t)
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	const arn = `"TableArn":"arn:aws:dynamodb:eu-west-1:123456789012:table/records"`
	const place, unknown, not = "table records, Region eu-west-1, account 123456789012", "table records, Region eu-west-1, account unknown", "the table's partition key is not pk, so the table has no Samekey records: is this the right table? "
	for describe, want := range map[string]struct {
		code int
		says string // besides the sentence that nothing waits for people
	}{
		`{"Table":{` + arn + `,"KeySchema":[{"AttributeName":"pk"}]}}`: {0, place + "\n"},
		`{"Table":{"TableArn":"records"}}`:                             {0, unknown + "\n"},
		`{}`:                                                           {0, unknown + "\n"},
		``:                                                             {0, unknown + "\n"},
		`{"Table":{` + arn + `,"KeySchema":[{"AttributeName":"id"}]}}`:                        {1, place + "\nsamekey list: " + not + place + "\n"},
		`{"Table":{` + arn + `,"KeySchema":[{"AttributeName":"pk"},{"AttributeName":"sk"}]}}`: {1, place + "\nsamekey list: " + not + place + "\n"},
	} {
		var stdout, stderr strings.Builder
		env := environment{
			stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, http: answering{describe},
			getenv: func(n string) string { return map[string]string{"IDEM_TABLE": "records", "USER": "jane"}[n] },
		}
		var code int
		synctest.Test(t, func(t *testing.T) { code = run(t.Context(), env, []string{"list"}) })
		if want.code == 0 {
			want.says += "nothing waits for people\n"
		}
		if diff := cmp.Diff(want.says, stderr.String()+stdout.String()); diff != "" || code != want.code {
			t.Errorf("%s: code %d (-want +got):\n%s", describe, code, diff)
		}
	}
}

// A scan prints its cost before it begins, if the table's size is known.
func TestScansTellTheirPrice(t *testing.T) {
	t.Parallel()
	for describe, want := range map[string]string{
		"items, bytes": "the scan reads the whole table: about 7 items in 3 pages, 384 read units, 6s at 0.5 pages a second\n",
		"":             "the scan reads the whole table: 0.5 pages of 1 MB a second, 128 read units a page\n",
	} {
		var out strings.Builder
		op := &operator{account: account{env: environment{stderr: &out}}}
		items := int64(0)
		if describe != "" {
			items, op.about = 7, &types.TableDescription{ItemCount: aws.Int64(7), TableSizeBytes: aws.Int64(2<<20 + 1)}
		}
		if got := op.tellScan(0.5); got != items || out.String() != want {
			t.Errorf("%d items, %q, want %q", got, out.String(), want)
		}
	}
}

// Commands wait longer for a page of 1 MB than functions wait for a record: the line may be slow.
func TestPagesMayTakeTheirTime(t *testing.T) {
	someAccount(t)
	op := &operator{account: account{env: environment{getenv: func(string) string { return "" }}}, table: "records"}
	if err := op.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, ok := op.client.Options().HTTPClient.(*awshttp.BuildableClient)
	if !ok || client.GetTimeout() != time.Minute {
		t.Errorf("an attempt may take %v", client.GetTimeout())
	}
	if op.client.Options().Logger != (logging.Nop{}) {
		t.Error("the SDK prints beside the command")
	}
}

// answering is a DynamoDB whose queries find nothing, and which
// describes the table or refuses to.
type answering struct{ describe string }

func (a answering) Do(req *http.Request) (*http.Response, error) {
	text := `{"Items":[],"Count":0,"ScannedCount":0}`
	if req.Header.Get("X-Amz-Target") == "DynamoDB_20120810.DescribeTable" {
		if text = a.describe; text == "" {
			return refusing{"AccessDeniedException"}.Do(req)
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(text)),
	}, nil
}
