//go:build linux

package memory_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/localtest"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// largestJob is the longest text that a job takes, in quotes.
const largestJob = 250<<10 - 2

// The ready worker with 128 MB works on the largest batches that its sources send: a resident
// memory and what is held as in TestPeak.
func TestPeakOfTheWorker(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "bootstrap")
	if err := lambdarun.BuildBootstrap(t.Context(), "github.com/samekey/samekey/cmd/samekey-worker", bin); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		jobs, args int // of each record
		body       int
		batch      func(t *testing.T, item func(i int) fakedynamo.Item) []byte
		held       int
	}{
		{name: "stream, large answers", body: 60 << 10, batch: ofStream, held: 22},
		{name: "stream, many jobs", jobs: 50, args: 5000, batch: ofStream, held: 25},
		{name: "stream, small records", body: 10, batch: ofStream, held: 32},
		{name: "stream, large jobs", jobs: 1, args: largestJob, batch: ofStream, held: 28},
		{name: "tickets of large jobs", jobs: 1, args: largestJob, batch: ofTickets, held: 20},
		{name: "a sweep of large jobs", jobs: 1, args: largestJob, batch: ofSweep, held: 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			kinds := record(t, c.jobs, c.args, c.body)
			for _, gogc := range []string{"GOGC=100", "GOGC=1"} {
				services := &services{}
				srv := httptest.NewServer(services)
				defer srv.Close()
				var batch []byte
				services.db.Locked(func(db *fakedynamo.DB) {
					batch = c.batch(t, func(i int) fakedynamo.Item {
						it := kinds(i)
						put(t, db, it)
						return it
					})
				})
				said := new(localtest.Buffer)
				f, err := lambdarun.Start(t.Context(), lambdarun.Config{
					Binary: bin, Stderr: said, Timeout: 5 * time.Minute,
					Env: []string{
						"GODEBUG=gctrace=1", gogc, "IDEM_TABLE=" + table, "AWS_ENDPOINT_URL=" + srv.URL, "AWS_ACCESS_KEY_ID=memory", "AWS_SECRET_ACCESS_KEY=memory",
						"SAMEKEY_TICKETS_URL=" + srv.URL + "/tickets", "SAMEKEY_SINKS=mail=sqs:" + srv.URL + "/mails",
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = f.Close() }()
				if _, err := f.Invoke(t.Context(), []byte(`{"source":"aws.scheduler","task":"count"}`)); err != nil {
					t.Fatal(err)
				}
				idle := live(said.String())
				re, err := f.Invoke(t.Context(), batch)
				if err != nil {
					t.Fatalf("%v\n%.2000s", err, said.String())
				}
				peak, held := rss(t, f.PID(), "VmHWM"), live(said.String())-idle
				t.Logf("%s: a batch of %.1f MB, %d messages sent, %.60s: %.1f MB resident, %d MB held", gogc, megabytes(batch), services.sent, re, peak, held)
				if gogc == "GOGC=100" && peak > mostRSS {
					t.Errorf("%.1f MB are resident, want at most %d", peak, mostRSS)
				}
				if gogc == "GOGC=1" && held > c.held {
					t.Errorf("%d MB are held, want at most %d", held, c.held)
				}
			}
		})
	}
}

// record makes a finished record with jobs and an answer of this size, under other keys.
func record(t *testing.T, n, args, body int) func(i int) fakedynamo.Item {
	t.Helper()
	db := &fakedynamo.DB{}
	records, err := dynamo.New(db, table, func(o *dynamo.Options) { o.Inline = 64 << 10 })
	if err != nil {
		t.Fatal(err)
	}
	random := mathrand.New(mathrand.NewPCG(1, 2))
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			if b[i] = ' ' + byte(random.IntN(90)); strings.IndexByte(`"&<>\`, b[i]) >= 0 {
				b[i] = 'x' // JSON escapes these
			}
		}
		return string(b)
	}
	engine := idem.New(records, idem.OneScope, func(o *idem.Options) { o.MaxBody = mb })
	_, err = engine.Do(t.Context(), idem.Request{Method: http.MethodPost, Path: "/", Key: "the-key-of-a-record-1234"}, func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			for range n {
				tx.Stage(idem.NewJob("mail", noise(args)))
			}
			return idem.Response{Status: 201, Body: []byte(noise(body))}, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	first := db.Items(table)[0]
	return func(i int) fakedynamo.Item {
		it := maps.Clone(first)
		it["pk"] = &types.AttributeValueMemberS{Value: "v1##" + strconv.Itoa(i)}
		it["id"] = &types.AttributeValueMemberS{Value: "OPERATION" + strconv.Itoa(i)}
		return it
	}
}

func put(t *testing.T, db *fakedynamo.DB, it fakedynamo.Item) {
	t.Helper()
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: it}); err != nil {
		t.Fatal(err)
	}
}

// ofStream is an event of 6 MB, or of 10,000 records, of inserted items.
func ofStream(t *testing.T, item func(i int) fakedynamo.Item) []byte {
	t.Helper()
	event := []byte(`{"Records":[`)
	for i := range 10_000 {
		it := item(i)
		image := streamimage.Of(it)
		b, err := json.Marshal(events.DynamoDBEventRecord{
			EventName: "INSERT", EventSource: "aws:dynamodb",
			Change: events.DynamoDBStreamRecord{SequenceNumber: strconv.Itoa(i), NewImage: image, Keys: map[string]events.DynamoDBAttributeValue{"pk": image["pk"]}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(event)+len(b)+3 > 6*mb {
			break
		}
		event = append(append(event, b...), ',')
	}
	return append(event[:len(event)-1], "]}"...)
}

// ofTickets is a batch of tickets for the jobs of all items.
func ofTickets(t *testing.T, item func(i int) fakedynamo.Item) []byte {
	t.Helper()
	var ev events.SQSEvent
	for i := range 10 {
		item(i)
		n := strconv.Itoa(i)
		ev.Records = append(ev.Records, events.SQSMessage{MessageId: n, ReceiptHandle: n, EventSource: "aws:sqs", Body: `{"pk":"v1##` + n + `","id":"OPERATION` + n + `","jobs":true}`})
	}
	b, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ofSweep is the event of the schedule: two pages for each segment.
func ofSweep(_ *testing.T, item func(i int) fakedynamo.Item) []byte {
	for i := range 64 {
		item(i)
	}
	return []byte(`{"source":"aws.scheduler"}`)
}

// services are DynamoDB and SQS.
type services struct {
	db   fakedynamo.Server
	mu   sync.Mutex
	sent int // messages
}

// ServeHTTP answers the requests of the SDK.
func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB") {
		re, err := s.db.Do(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		maps.Copy(w.Header(), re.Header)
		w.WriteHeader(re.StatusCode)
		_, _ = io.Copy(w, re.Body)
		return
	}
	var in struct {
		Entries []struct{ Id, MessageBody string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type result struct{ Id, MessageId, MD5OfMessageBody string }
	out := struct{ Successful, Failed []result }{Failed: []result{}}
	for _, e := range in.Entries {
		sum := md5.Sum([]byte(e.MessageBody))
		out.Successful = append(out.Successful, result{e.Id, e.Id, hex.EncodeToString(sum[:])})
	}
	s.mu.Lock()
	s.sent += len(in.Entries)
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(out)
}
