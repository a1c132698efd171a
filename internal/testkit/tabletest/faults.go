package tabletest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// faults collects connection faults that the test has not injected.
type faults struct {
	mu   sync.Mutex
	seen []string
}

func (f *faults) note(req *http.Request, err error) {
	if req.Context().Err() != nil {
		return // an injected fault
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, fmt.Sprintf("%s: %v", req.Header.Get("X-Amz-Target"), err))
}

// faults.tell logs the faults if the test has failed.
func (f *faults) tell(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.Failed() && len(f.seen) > 0 {
		t.Logf("the connection to DynamoDB Local had faults that no test injected: %q", f.seen)
	}
}
