package lambdarun

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// apiClient is a runtime that does not keep to the rules.
type apiClient struct {
	t   *testing.T
	srv *httptest.Server
}

func newAPIClient(t *testing.T, api *runtimeAPI) apiClient {
	t.Helper()
	srv := httptest.NewServer(api.handler())
	t.Cleanup(srv.Close)
	return apiClient{t, srv}
}

func (c apiClient) do(method, path, body string) (status int, header http.Header, text string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.srv.URL+"/2018-06-01/runtime"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := c.srv.Client().Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func (c apiClient) wantStatus(want int, method, path, body string) {
	c.t.Helper()
	if got, _, text := c.do(method, path, body); got != want {
		c.t.Errorf("%s %s: status %d, want %d: %s", method, path, got, want, text)
	}
}

func TestRuntimeAPIHandsOutWork(t *testing.T) {
	t.Parallel()
	api := newRuntimeAPI("arn:test", 1)
	c := newAPIClient(t, api)
	inv := newInvocation([]byte(`{"a":1}`))
	inv.deadline = time.UnixMilli(1_700_000_000_123)
	go api.hand(inv, nil)

	status, header, body := c.do(http.MethodGet, "/invocation/next", "")
	if status != http.StatusOK || body != `{"a":1}` {
		t.Errorf("next: %d %s", status, body)
	}
	for name, want := range map[string]string{
		"Lambda-Runtime-Aws-Request-Id":       inv.id,
		"Lambda-Runtime-Deadline-Ms":          "1700000000123",
		"Lambda-Runtime-Invoked-Function-Arn": "arn:test",
		"Lambda-Runtime-Trace-Id":             inv.traceID,
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	<-api.polled
}

func TestRuntimeAPITakesOneAnswerForTheRightInvocation(t *testing.T) {
	t.Parallel()
	api := newRuntimeAPI("arn:test", 1)
	c := newAPIClient(t, api)
	c.wantStatus(http.StatusBadRequest, http.MethodPost, "/invocation/none/response", "before any")

	inv := newInvocation(nil)
	go api.hand(inv, nil)
	c.wantStatus(http.StatusOK, http.MethodGet, "/invocation/next", "")
	c.wantStatus(http.StatusBadRequest, http.MethodPost, "/invocation/other/response", "wrong")
	c.wantStatus(http.StatusBadRequest, http.MethodPost, "/invocation/other/error", "wrong")
	c.wantStatus(http.StatusAccepted, http.MethodPost, "/invocation/"+inv.id+"/response", "right")
	c.wantStatus(http.StatusBadRequest, http.MethodPost, "/invocation/"+inv.id+"/response", "again")
	c.wantStatus(http.StatusBadRequest, http.MethodPost, "/invocation/"+inv.id+"/error", "again")

	if out := <-inv.answer; out.err != nil || string(out.payload) != "right" {
		t.Errorf("outcome is %q, %v", out.payload, out.err)
	}
}

func TestRuntimeAPIReadsErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, header, body    string
		wantType, wantMessage string
	}{
		{"as JSON", "", `{"errorType":"A","errorMessage":"b","stackTrace":[]}`, "A", "b"},
		{"type in the header", "H", `{"errorMessage":"b"}`, "H", "b"},
		{"not JSON", "H", "plain", "H", "plain"},
		{"nothing", "", "", "Runtime.Unknown", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := newRuntimeAPI("arn:test", 1)
			inv := newInvocation(nil)
			api.hold(inv)
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost,
				"/2018-06-01/runtime/invocation/"+inv.id+"/error", strings.NewReader(tt.body))
			if tt.header != "" {
				req.Header.Set("Lambda-Runtime-Function-Error-Type", tt.header)
			}
			rec := httptest.NewRecorder()
			api.handler().ServeHTTP(rec, req)
			if rec.Code != http.StatusAccepted {
				t.Errorf("status %d", rec.Code)
			}
			fe, ok := errors.AsType[*FunctionError]((<-inv.answer).err)
			if !ok || fe.Type != tt.wantType || fe.Message != tt.wantMessage || fe.RequestID != inv.id {
				t.Errorf("error is %+v", fe)
			}
		})
	}
}

// Ensure a runtime that breaks off in the middle has not answered.
func TestRuntimeAPIIgnoresAResponseCutShort(t *testing.T) {
	t.Parallel()
	api := newRuntimeAPI("arn:test", 1)
	inv := newInvocation(nil)
	api.hold(inv)
	for _, path := range []string{"/invocation/" + inv.id + "/response", "/invocation/" + inv.id + "/error", "/init/error"} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/2018-06-01/runtime"+path,
			io.MultiReader(strings.NewReader("half"), errorReader{}))
		rec := httptest.NewRecorder()
		api.handler().ServeHTTP(rec, req)
		if rec.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d", path, rec.Code)
		}
	}
	if api.take(inv.id) != inv || len(inv.answer) != 0 {
		t.Error("half an answer was taken")
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Ensure a poll that is broken off leaves nothing waiting.
func TestRuntimeAPIPollEndsWithItsClient(t *testing.T) {
	t.Parallel()
	api := newRuntimeAPI("arn:test", 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/2018-06-01/runtime/invocation/next", nil)
		api.handler().ServeHTTP(httptest.NewRecorder(), req)
	}()
	<-api.polled
	cancel()
	<-done
}

func TestRuntimeAPIHandsNothingToTheDead(t *testing.T) {
	t.Parallel()
	api := newRuntimeAPI("arn:test", 1)
	gone := make(chan struct{})
	close(gone)
	if api.hand(newInvocation(nil), gone) {
		t.Error("handed over")
	}
}
