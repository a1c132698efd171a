package webhook_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem/webhook"
)

// After a panic of the handler, the provider gets an answer, and the connection
// is not cut.
func TestPanicOverHTTP(t *testing.T) {
	t.Parallel()
	panicking := true
	e := newEndpoint(t, func(context.Context, webhook.Event) error {
		if panicking {
			panic("boom")
		}
		return nil
	})
	server := httptest.NewUnstartedServer(e)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	defer server.Close()
	for _, status := range []int{http.StatusInternalServerError, http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(succeeded))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = stripeSigned(succeeded, e.clock.Now(), stripeSecret)
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatalf("the provider gets %v", err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("got %d, want %d", resp.StatusCode, status)
		}
		panicking = false
	}
}
