package tabletest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// line is the way to DynamoDB Local, which resets a connection now and then on a busy
// machine ("use of closed network connection", aws/aws-sdk-go-v2 issue 1825). line
// repeats reads for that reason, so that tests count the requests of the code only.
// Other faults that no test has injected are kept for the log.
type line struct {
	base http.RoundTripper

	mu     sync.Mutex
	faults []string
}

// reads change nothing, so line may repeat them.
var reads = []string{"GetItem", "BatchGetItem", "Query", "Scan"}

const readTries = 5

// RoundTrip implements [http.RoundTripper].
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	target := req.Header.Get("X-Amz-Target")
	if !slices.Contains(reads, target[strings.LastIndexByte(target, '.')+1:]) || req.Body == nil {
		resp, err := l.base.RoundTrip(req)
		if err == nil && resp.StatusCode >= http.StatusInternalServerError {
			l.note(req, errors.New(resp.Status))
		} else if err != nil {
			l.note(req, err)
		}
		return resp, err
	}
	defer req.Body.Close() //nolint:errcheck // it is in memory
	asked, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		resp, err := l.read(req, asked)
		if err == nil || try == readTries || req.Context().Err() != nil {
			return resp, err
		}
		l.note(req, err)
	}
}

// read sends a read, and waits for the whole answer.
func (l *line) read(req *http.Request, asked []byte) (*http.Response, error) {
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(asked))
	resp, err := l.base.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}

// tell logs the faults if the test has failed.
func (l *line) tell(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Failed() && len(l.faults) > 0 {
		t.Logf("the connection to DynamoDB Local had faults that no test injected: %q", l.faults)
	}
}

func (l *line) note(req *http.Request, err error) {
	if req.Context().Err() != nil {
		return // the test's own
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf("%s: %v", req.Header.Get("X-Amz-Target"), err))
}
