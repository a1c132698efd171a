package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/local/eventsource"
)

// lambdaRuns is a Lambda service with one function.
type lambdaRuns struct {
	fn func(ctx context.Context, payload []byte) ([]byte, error)
}

func (l lambdaRuns) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	resp := &http.Response{StatusCode: http.StatusOK, Request: req, Header: http.Header{}}
	out, err := l.fn(req.Context(), body)
	if err != nil {
		resp.Header.Set("X-Amz-Function-Error", "Unhandled")
		out = []byte(`{"errorMessage":"` + err.Error() + `"}`)
	}
	resp.Body = io.NopCloser(strings.NewReader(string(out)))
	return resp, nil
}

// staged returns a finished record with a job, in the form of the stream's images.
func (d *desk) staged(t *testing.T, key, job string) string {
	t.Helper()
	req := request()
	req.Key = key
	if _, err := d.engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob(job, "to "+key))
	}); err != nil {
		t.Fatal(err)
	}
	pk, err := (records.Customer{Namespace: "rides", Key: key, Scope: "jwt:jane"}).PK(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := d.env["IDEM_TABLE"]
	out, err := d.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := attributevalue.MarshalMapJSON(out.Item)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The worker gets the records that TTL removed, and delivers their jobs. A record that fails
// doesn't delay the others. Records that are still in the table are left to the sweep.
func TestResend(t *testing.T) {
	d := newDesk(t)
	inTable, gone, failing, byHand := d.staged(t, "k-in-table", "mail"), d.staged(t, "k-gone", "mail"), d.staged(t, "k-failing", "fax"), d.staged(t, "k-by-hand", "mail")
	record := func(n, name, images, by string) string {
		return `{"eventName":"` + name + `","eventSource":"aws:dynamodb",` + by + `"dynamodb":{"ApproximateCreationDateTime":1763800000.0,` + images + `,"SequenceNumber":"` + n + `"}}`
	}
	const ttl = `"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},`
	object := eventsource.Failure{Payload: []byte(`{"Records":[` + strings.Join([]string{
		record("1", "INSERT", `"NewImage":`+inTable, ""),
		record("2", "REMOVE", `"OldImage":`+failing, ttl),
		record("3", "REMOVE", `"OldImage":`+byHand, ""),
		record("4", "REMOVE", `"OldImage":`+gone, ttl),
	}, ",") + `]}`)}.Object()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "aws", "lambda", "object"), object)

	var sent []string
	sink := jobs.SinkFunc(func(_ context.Context, job jobs.Delivery) error {
		if job.Kind == "fax" {
			return errors.New("no line")
		}
		sent = append(sent, string(job.Args))
		return nil
	})
	worker := lambdaRuns{stream.NewDrain(d.store, sink).Invoke}
	code, stdout, stderr := callAt(t, worker, "redrive", "--removed", "--function", "worker", folder)
	if code != 1 || stdout != "removed records sent to the worker: 2, from 1 files; failed: 1\n" || !strings.Contains(stderr, "the record with the sequence number 2") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	if !slices.Equal(sent, []string{`"to k-gone"`}) {
		t.Errorf("delivered %q", sent)
	}
}

func write(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, raw, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestResendWorstInputs(t *testing.T) {
	someAccount(t)
	good := filepath.Join(t.TempDir(), "good")
	write(t, good, eventsource.Failure{Payload: []byte(`{"Records":[{"eventName":"REMOVE","userIdentity":{"principalId":"dynamodb.amazonaws.com"}}]}`)}.Object())
	queue := filepath.Join(t.TempDir(), "queue")
	write(t, queue, eventsource.Failure{}.Message())
	other := filepath.Join(t.TempDir(), "other")
	write(t, other, []byte("Tickets"))
	half, err := json.Marshal(map[string]string{"payload": "{"})
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	write(t, broken, half)
	hollow := filepath.Join(t.TempDir(), "hollow")
	write(t, hollow, eventsource.Failure{Payload: []byte(`{"Records":[7]}`)}.Object())
	says := func(answer string, err error) lambdaRuns {
		return lambdaRuns{func(context.Context, []byte) ([]byte, error) { return []byte(answer), err }}
	}
	const noWorker, none = "the function is not a worker: json: cannot unmarshal string into Go value of type struct { ErrorMessage string; BatchItemFailures []struct { ItemIdentifier string } }", "removed records sent to the worker: 0, from 0 files; failed: 0\n"
	one := func(failed int) string {
		return fmt.Sprintf("removed records sent to the worker: 1, from 1 files; failed: %d\n", failed)
	}
	for name, tt := range map[string]struct {
		args []string
		aws  lambdaRuns
		code int
		want string // FILE stands for the file's path
	}{
		"no worker named":  {[]string{good}, says("", nil), 2, "samekey redrive: --removed needs --function WORKER and at least one FILE\n"},
		"no file named":    {[]string{"--function", "w"}, says("", nil), 2, "samekey redrive: --removed needs --function WORKER and at least one FILE\n"},
		"no such file":     {[]string{"--function", "w", "nothing"}, says("", nil), 1, "samekey redrive: lstat FILE: no such file or directory\n"},
		"an empty folder":  {[]string{"--function", "w", t.TempDir()}, says("", nil), 0, none},
		"a queue's":        {[]string{"--function", "w", queue}, says("", nil), 1, "samekey redrive: FILE: the object has no payload: Lambda includes the stream records only if the on-failure destination is an S3 bucket\n"},
		"something else":   {[]string{"--function", "w", other}, says("", nil), 1, "samekey redrive: FILE: the file is not an object of FailedBucket: invalid character 'T' looking for beginning of value\n"},
		"half an event":    {[]string{"--function", "w", broken}, says("", nil), 1, "samekey redrive: FILE: the payload is not a stream event: unexpected end of JSON input\n"},
		"no record":        {[]string{"--function", "w", hollow}, says("", nil), 1, "samekey redrive: FILE: the payload is not a stream event: json: cannot unmarshal number into Go value of type struct { EventName string; UserIdentity struct { PrincipalID string } }\n"},
		"a worker's error": {[]string{"--function", "w", good}, says("", errors.New("no table")), 1, one(1) + "samekey redrive: FILE: the worker failed: no table\n"},
		"no worker":        {[]string{"--function", "w", good}, says(`"hello"`, nil), 1, one(1) + "samekey redrive: FILE: " + noWorker + "\n"},
		"left undone":      {[]string{"--function", "w", good}, says(`{"batchItemFailures":[{"itemIdentifier":"7"}]}`, nil), 1, one(1) + "samekey redrive: FILE: the worker did not process the record with the sequence number 7: see the worker's log\n"},
		"done":             {[]string{"--function", "w", good}, says(`{"batchItemFailures":[]}`, nil), 0, one(0)},
	} {
		code, stdout, stderr := callAt(t, tt.aws, append([]string{"redrive", "--removed"}, tt.args...)...)
		got := strings.ReplaceAll(stdout+strings.TrimPrefix(stderr, "function w, Region us-east-1\n"), tt.args[len(tt.args)-1]+":", "FILE:")
		if diff := cmp.Diff(tt.want, got); diff != "" || code != tt.code || (code < 2) != strings.HasPrefix(stderr, "function w, Region us-east-1\n") {
			t.Errorf("%s: code %d, %s (-want +got):\n%s", name, code, stderr, diff)
		}
	}
}
