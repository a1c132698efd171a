//go:build linux

package memory_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/localtest"
	"github.com/samekey/samekey/proof/internal/harness"
)

const (
	mb = 1 << 20
	// mostRSS is what a process of a function with 128 MB may have, in MB. AWS doesn't say how
	// much of the 128 MB its own processes take: 16 MB are assumed.
	mostRSS = 128 - 16

	largest = 6*mb - 1000 // an event or answer with this body just fits into Lambda's 6 MB
)

// A function with 128 MB serves bodies of 6 MB, new and replayed, in a process as Lambda
// starts it: its resident memory stays below mostRSS, with Go's defaults. Garbage is a good
// part of that, so held is what is in use at most, beyond an idle process, in MB: as the
// garbage collector sees it if it runs all the time. It is the sum of
//
//   - the event as the runtime reads it: a buffer of 8 MB for 6 MB;
//   - the body as the handler gets it, a string (6);
//   - the body as the engine gets it, bytes (6);
//   - the answer as the handler made it, a string (6), and as the engine gets it, bytes (6);
//   - its compressed form (6: room for a body that doesn't compress);
//   - a call with eight companions, twice in the SDK (8), or the answer's JSON, twice (14),
//     when the compressed form is gone.
func TestPeak(t *testing.T) {
	db := dynamotest.Start(t)
	records := newTable(t, db)
	bin := filepath.Join(t.TempDir(), "bootstrap")
	if err := lambdarun.BuildBootstrap(t.Context(), "github.com/samekey/samekey/proof/memory/cmd/function", bin); err != nil {
		t.Fatal(err)
	}
	start := func(t *testing.T, gogc string, c peakCase) (*lambdarun.Function, *localtest.Buffer) {
		t.Helper()
		said := new(localtest.Buffer)
		f, err := lambdarun.Start(t.Context(), lambdarun.Config{
			Binary: bin, Stderr: said, Timeout: 5 * time.Minute,
			Env: slices.Concat([]string{"GODEBUG=gctrace=1", gogc, "IDEM_TABLE=" + records, "AWS_ENDPOINT_URL_DYNAMODB=" + db.Endpoint}, db.Env(), c.env),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		invoke(t, f, c.event(t, rand.Text(), 5000, 10))
		return f, said
	}
	for _, c := range []peakCase{
		{name: "an answer", body: 10, answer: largest, held: 28, replay: 20},
		{name: "both", body: largest, answer: largest, held: 48, replay: 32},
		{name: "a batch of messages", body: largest, env: []string{"PEAK_SOURCE=sqs"}, held: 24, replay: 24},
		{
			name: "both in base64, to a function URL, and the request is stored", body: largest, answer: largest, binary: true,
			env: []string{"PEAK_SOURCE=url", "PEAK_RESUMABLE=1"}, held: 48, replay: 30,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			large := c.event(t, rand.Text(), c.body, c.answer)
			var first []byte
			for _, does := range []string{"new", "replay"} { // each in a process that has served nothing large
				f, _ := start(t, "GOGC=100", c)
				idle := rss(t, f.PID(), "VmRSS")
				answer := invoke(t, f, large)
				peak := rss(t, f.PID(), "VmHWM")
				if first == nil {
					first = answer
				}
				if bodyOf(t, answer) != bodyOf(t, first) || len(answer) < c.answer {
					t.Errorf("%s: %d bytes, the first answer had %d", does, len(answer), len(first))
				}
				if invoke(t, f, large); rss(t, f.PID(), "VmHWM") > peak {
					peak = rss(t, f.PID(), "VmHWM")
				}
				t.Logf("%s: an event of %.1f MB, an answer of %.1f MB: %.1f MB resident, %.1f idle", does, megabytes(large), megabytes(answer), peak, idle)
				if peak > mostRSS {
					t.Errorf("%s: %.1f MB are resident, want at most %d", does, peak, mostRSS)
				}
			}
			for i, most := range []int{c.held, c.replay} {
				// What is made while the collector runs is held to it, and on a busy machine it runs for longer:
				// the least of some processes counts.
				held := math.MaxInt
				for range 3 {
					event := large
					if i == 0 {
						event = c.event(t, rand.Text(), c.body, c.answer)
					}
					f, said := start(t, "GOGC=1", c)
					idle := live(said.String())
					invoke(t, f, event)
					large, held = event, min(held, live(said.String())-idle)
					t.Logf("%s: %d MB are held, %d idle", []string{"new", "replay"}[i], held, idle)
					if held <= most {
						break
					}
				}
				if held > most || held < c.body/mb {
					t.Errorf("%s: %d MB are held, want at most %d", []string{"new", "replay"}[i], held, most)
				}
			}
		})
	}
}

type peakCase struct {
	name         string
	body, answer int // bytes in event and answer
	binary       bool
	env          []string
	held, replay int
}

func megabytes(b []byte) float64 { return float64(len(b)) / mb }

func bodyOf(t *testing.T, answer []byte) string {
	t.Helper()
	var a struct{ Body string }
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatal(err)
	}
	return a.Body
}

// live is the largest heap in use that a process has seen, in MB, by its lines of gctrace:
// what was marked.
func live(said string) (most int) {
	for _, m := range regexp.MustCompile(`\d+->\d+->(\d+) MB`).FindAllStringSubmatch(said, -1) {
		n, _ := strconv.Atoi(m[1])
		most = max(most, n)
	}
	return most
}

func newTable(t *testing.T, db *dynamotest.DB) string {
	t.Helper()
	name := "memory-" + rand.Text()
	if err := dynamo.CreateTable(t.Context(), db.Client(), name); err != nil {
		t.Fatal(err)
	}
	return name
}

// event asks for an answer of so many letters, by a body of as many; without an answer it is ten
// messages with these bodies together.
func (c peakCase) event(t *testing.T, key string, body, answer int) []byte {
	t.Helper()
	if c.answer == 0 {
		var ev events.SQSEvent
		for i := range 10 {
			ev.Records = append(ev.Records, events.SQSMessage{
				MessageId: key + strconv.Itoa(i), EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:queue",
				Body: strings.Repeat("x", (body-3000)/10),
			})
		}
		b, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	text := strings.Repeat("0123456789abcdef", body/16+1)[:body]
	form := "text"
	if c.binary {
		form, text = "binary", base64.StdEncoding.EncodeToString([]byte(text[:body/4*3]))
	}
	if body > 100 {
		text = text[:len(text)-len(text)%4]
	}
	b, err := json.Marshal(map[string]any{
		"version": "2.0", "routeKey": "POST /things", "rawPath": "/things", "isBase64Encoded": c.binary, "body": text,
		"headers":               map[string]string{"idempotency-key": key, "content-type": "text/plain"},
		"queryStringParameters": map[string]string{"answer": strconv.Itoa(answer - answer%4), "form": form},
		"requestContext":        map[string]any{"http": map[string]string{"method": "POST", "path": "/things"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func invoke(t *testing.T, f *lambdarun.Function, event []byte) []byte {
	t.Helper()
	out, err := f.Invoke(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(out, []byte(`{"statusCode":201`)) && string(out) != `{"batchItemFailures":[]}` {
		t.Fatalf("%.300s", out)
	}
	return out
}

// rss is a figure of a process's memory, in MB.
func rss(t *testing.T, pid int, name string) float64 {
	t.Helper()
	kb, ok := harness.Memory(pid, name)
	if !ok {
		t.Fatalf("no %s of process %d", name, pid)
	}
	return float64(kb) / 1024
}
