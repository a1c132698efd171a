package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// everyCommand returns calls of all commands on a table, which reach the table.
func everyCommand() [][]string {
	const pk = "v1#rides#VgytXNOpVgytXNOpVgytXNOpVgytXNOpVgytXNOpVg0"
	return [][]string{
		{"get", pk},
		{"get", "--key", customersKey, "--scope", "one"},
		{"get", "--pages", "1000", "AAAAAAAAAAAAAAAAAAAAAAAAAA"},
		{"list"},
		{"list", "--scan", "--pages", "1000"},
		{"retry", "--yes", pk},
		{"settle", "--yes", "--answer", "410", pk},
		{"release", "--yes", pk},
		{"forget", "--yes", pk},
		{"redrive", "--yes", pk},
		{"cancel", "--yes", pk},
	}
}

// Commands handle the worst inputs: no table, no permissions, a throttled table.
// They print the service's error, never call a table empty, and print no key.
func TestWorstInputs(t *testing.T) {
	bareAWS(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	for _, code := range []string{"ResourceNotFoundException", "AccessDeniedException", "ProvisionedThroughputExceededException"} {
		for _, args := range everyCommand() {
			var stdout, stderr strings.Builder
			env := environment{
				stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, http: refusing{code},
				getenv: func(n string) string { return map[string]string{"IDEM_TABLE": "records", "USER": "jane"}[n] },
			}
			var got int
			synctest.Test(t, func(t *testing.T) { got = run(t.Context(), env, args) }) // the SDK's pauses pass in the bubble's time
			want := code
			if code == "ResourceNotFoundException" {
				want = "no table records at "
			}
			if got != 1 || !strings.Contains(stderr.String(), want) || strings.Contains(stderr.String(), "nothing waits") || strings.Contains(stderr.String()+stdout.String(), customersKey) {
				t.Errorf("%s: %v: code %d, %s%s", code, args, got, stdout.String(), stderr.String())
			}
		}
	}
	for _, args := range everyCommand() {
		if code, _, stderr := call(t, map[string]string{"USER": "jane"}, args...); code != 2 || !strings.Contains(stderr, "no table") {
			t.Errorf("%v without a table: code %d, %s", args, code, stderr)
		}
	}
}

// Commands refuse records of another layout, and of another namespace.
func TestUnknownLayout(t *testing.T) {
	d := newDesk(t)
	pk := d.stuck(t).PK
	if _, err := d.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(d.env["IDEM_TABLE"]), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
		UpdateExpression: aws.String("SET v = :v"), ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: "99"}},
	}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"get", pk}, {"retry", "--yes", pk}, {"settle", "--yes", "--answer", "410", pk}, {"release", "--yes", pk}, {"forget", "--yes", pk}, {"redrive", "--yes", pk},
	} {
		d.fails(t, 1, "layout version 99 is not known to this program", args...)
	}
	if out := d.ok(t, "list", "--scan", "--pages", "1000"); !strings.Contains(out, "unreadable") {
		t.Errorf("listed %s", out)
	}
}

// paging is a table of waiting records, which are read in pages.
type paging struct{ items, page int }

func (p paging) Do(req *http.Request) (*http.Response, error) {
	var in struct {
		ExclusiveStartKey map[string]map[string]string
		Segment, Limit    int
		IndexName         string
	}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		return nil, err
	}
	var out any
	switch req.Header.Get("X-Amz-Target") {
	case "DynamoDB_20120810.DescribeTable":
		out = map[string]any{"Table": map[string]any{"ItemCount": p.items, "TableSizeBytes": p.items * 700}}
	case "DynamoDB_20120810.Query":
		return refusing{"ValidationException"}.index(req)
	default:
		from := 0
		if k := in.ExclusiveStartKey["pk"]["S"]; k != "" {
			_, err = fmt.Sscanf(k[len(k)-8:], "%d", &from)
		}
		of := p.items / 8
		var items []any
		for i := from; i < min(from+p.page, of); i++ {
			items = append(items, waiting(in.Segment, i))
		}
		res := map[string]any{"Items": items, "Count": len(items), "ScannedCount": len(items)}
		if from+p.page < of {
			res["LastEvaluatedKey"] = map[string]any{"pk": map[string]string{"S": fmt.Sprintf("v1#rides#%d-%08d", in.Segment, from+p.page)}}
		}
		out = res
	}
	text, merr := json.Marshal(out)
	if err != nil || merr != nil {
		return nil, fmt.Errorf("%w, %w", err, merr)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(bytes.NewReader(text)),
	}, nil
}

// index describes a table without the index.
func (r refusing) index(req *http.Request) (*http.Response, error) {
	resp, err := r.Do(req)
	resp.Body = io.NopCloser(strings.NewReader(`{"__type":"com.amazonaws#` + r.code + `","message":"The table does not have the specified index: waiting"}`))
	return resp, err
}

func waiting(segment, i int) any {
	s := func(v string) any { return map[string]string{"S": v} }
	n := func(v int64) any { return map[string]string{"N": fmt.Sprint(v)} }
	return map[string]any{
		"pk": s(fmt.Sprintf("v1#rides#%d-%08d", segment, i)), "v": n(1), "st": s("stuck"), "owner": s("o"), "ver": n(2), "lease_ms": n(0), "fp": s("f"),
		"id": s("OPERATION"), "jobs": map[string]any{"M": map[string]any{}}, "created_ms": n(1_800_000_000_000), "run_ms": n(1_800_000_000_000 + int64(i)), "keep": s("open"),
		"route": s("POST /rides"), "last_err": s("the bank is gone\x1b[2J"),
	}
}

// An outage takes one row, whatever the number of its operations and of printed rows.
func TestAnOutageIsOneRow(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		rows int
		want string // how each row begins
	}{
		"folded":           {nil, 1, "stuck  1000  "},
		"with the least":   {[]string{"--max", "1"}, 1, "stuck  1000  "},
		"each record":      {[]string{"--each"}, 1000, "stuck  1  "},
		"some of them all": {[]string{"--each", "--max", "7"}, 7, "stuck  1  "},
	} {
		t.Run(name, func(t *testing.T) {
			bareAWS(t)
			t.Setenv("AWS_REGION", "us-east-1")
			t.Setenv("AWS_ACCESS_KEY_ID", "local")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
			var stdout, stderr strings.Builder
			env := environment{
				stdout: &stdout, stderr: &stderr, http: paging{1000, 50}, getenv: func(n string) string { return map[string]string{"IDEM_TABLE": "records"}[n] },
				now: func() time.Time { return time.UnixMilli(1_800_003_600_000) },
			}
			if code := run(t.Context(), env, append([]string{"list", "--pages", "100000"}, tt.args...)); code != 0 {
				t.Fatalf("code %d: %s", code, stderr.String())
			}
			rows := strings.Split(strings.TrimSpace(stdout.String()), "\n")[1:]
			if len(rows) != tt.rows || !strings.Contains(stderr.String(), "stuck: 1000") {
				t.Fatalf("%d rows, want %d: %.600s%s", len(rows), tt.rows, stdout.String(), stderr.String())
			}
			for _, row := range rows {
				if !strings.HasPrefix(strings.Join(strings.Fields(row), "  "), tt.want) {
					t.Fatalf("got the row %s, want %s…", row, tt.want)
				}
			}
		})
	}
}
