package lambda_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// TestStart runs this test binary as a function under a Lambda runtime API: one
// event, its retry, then one that panics, which ends the process.
func TestStart(t *testing.T) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		startFunction()
	}
	t.Parallel()
	type report struct{ path, body string }
	reports := make(chan report, 8)
	bodies := []string{"one", "one", "panic"}
	n := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		if n == len(bodies) {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", strconv.Itoa(n))
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
		c := newCall("k-" + bodies[n])
		c.body = []byte(bodies[n])
		_, _ = w.Write(httpAPI.payload(t, c))
		n++
	})
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/{kind}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reports <- report{r.PathValue("id") + "/" + r.PathValue("kind"), string(body)}
		w.WriteHeader(http.StatusAccepted)
	})
	api := httptest.NewServer(mux)
	defer api.Close()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStart$")
	cmd.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the process ended well, want it to end after the panic")
	}
	close(reports)
	want := []report{{"0/response", "made one"}, {"1/response", idem.ReplayedHeader}, {"2/error", "boom"}}
	for _, w := range want {
		got, ok := <-reports
		if !ok || got.path != w.path || !strings.Contains(got.body, w.body) {
			t.Errorf("got %+v, want %s with %q\n%s", got, w.path, w.body, out)
		}
	}
}

func startFunction() {
	lambda.Start(lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.HTTPAPI,
		func(_ context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			if ev.Body == "panic" {
				panic("boom")
			}
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "made " + ev.Body}, nil
		}))
}
