package main

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samekey/samekey/proof/sealed/suite"
)

// Each snippet that a run replaces is there.
func TestChangesFitTheCode(t *testing.T) {
	t.Parallel()
	if _, err := changed("../..", t.TempDir()); err != nil {
		t.Error(err)
	}
}

// The tap keeps everything that is written to a table of records, in every operation, and
// nothing of other tables; the judge finds contents there and in logs.
func TestLeaksAreFound(t *testing.T) {
	t.Parallel()
	db := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	t.Cleanup(db.Close)
	const content = "a content that a test has written"
	binary := base64.StdEncoding.EncodeToString([]byte("..." + content))
	for name, tt := range map[string]struct {
		op, body, log string
		want          string // of the error; "" for none
	}{
		"a put":               {op: "PutItem", body: `{"TableName":"r","Item":{"x":{"S":"` + content + `"}}}`, want: "1 found"},
		"a binary":            {op: "PutItem", body: `{"TableName":"arn:aws:dynamodb:x:1:table/r","Item":{"x":{"M":{"y":{"B":"` + binary + `"}}}}}`, want: "1 found"},
		"an update":           {op: "UpdateItem", body: `{"TableName":"r","ExpressionAttributeValues":{":x":{"L":[{"S":"` + content + `"}]}}}`, want: "1 found"},
		"a name":              {op: "UpdateItem", body: `{"TableName":"r","ExpressionAttributeNames":{"#x":"` + content + `"}}`, want: "1 found"},
		"a transaction":       {op: "TransactWriteItems", body: `{"TransactItems":[{"Put":{"TableName":"app","Item":{}}},{"Update":{"TableName":"r","x":"` + content + `"}}]}`, want: "1 found"},
		"a batch":             {op: "BatchWriteItem", body: `{"RequestItems":{"r":[{"PutRequest":{"Item":{"b":{"B":"` + binary + `"}}}}]}}`, want: "1 found"},
		"a log":               {op: "PutItem", body: `{"TableName":"r","Item":{}}`, log: `{"msg":"` + content + `"}`, want: "1 in 1 lines logged"},
		"the app's own table": {op: "PutItem", body: `{"TableName":"app","Item":{"x":{"S":"` + content + `"}}}`},
		"a user's, beside it": {op: "PutItem", body: `{"TableName":"r-app","Item":{"x":{"S":"` + content + `"}}}`},
		"nothing":             {op: "PutItem", body: `{"TableName":"r","Item":{"x":{"S":"sealed"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tap, err := openTap(db.URL, filepath.Join(dir, "written"))
			if err != nil {
				t.Fatal(err)
			}
			send := func(op, body string) {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tap.url, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
				re, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer re.Body.Close()
				if got, err := io.ReadAll(re.Body); err != nil || string(got) != body {
					t.Errorf("the tap passes on %q, %v", got, err)
				}
			}
			send("CreateTable", `{"TableName":"r","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`)
			send("CreateTable", `{"TableName":"r-app","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`)
			send("CreateTable", `{"TableName":"app","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}`)
			var fill bytes.Buffer
			for i := range 20 {
				fill.WriteString(`"` + strings.Repeat("x", i+1) + `":{"S":"y"},`)
			}
			send("PutItem", `{"TableName":"r","Item":{`+fill.String()+`"pk":{"S":"z"}}}`)
			send(tt.op, tt.body)
			if err := tap.close(); err != nil {
				t.Fatal(err)
			}
			var noted strings.Builder
			for _, c := range []string{content, "another content, number 1", "another content, number 2", "another content, number 3", "another content, number 4"} {
				noted.WriteString(base64.StdEncoding.EncodeToString([]byte(c)) + "\n")
			}
			for file, text := range map[string]string{suite.FileContents + "1": noted.String(), suite.FileLog + "1": tt.log} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			verdict, err := (&round{dir: dir}).judge(nil)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the judge says %q, %v; want %q", verdict, err, tt.want)
			}
		})
	}
}

// A round without contents, or whose control finds none, shows nothing and fails.
func TestBlindRoundsFail(t *testing.T) {
	t.Parallel()
	for _, r := range []*round{{plain: true}, {plain: false}, {part: part{memory: true}}} {
		r.dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(r.dir, "written"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if verdict, err := r.judge(nil); err == nil {
			t.Errorf("of nothing, the judge says %q", verdict)
		}
	}
}
