package line

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A read survives connections that are reset in the middle of the answer; a write does
// not, since it may have been applied.
func TestReadsAreRepeated(t *testing.T) {
	t.Parallel()
	for op, survives := range map[string]bool{"GetItem": true, "PutItem": false} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int32
			whole := strings.Repeat("x", 1<<20)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked, err := io.ReadAll(r.Body)
				if err != nil || string(asked) != "{}" {
					t.Errorf("asked %q, %v", asked, err)
				}
				if sent.Add(1) > 2 {
					_, _ = io.WriteString(w, whole)
					return
				}
				w.Header().Set("Content-Length", "1048576")
				_, _ = io.WriteString(w, whole[:1000])
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.(*net.TCPConn).SetLinger(0) // a reset
				_ = conn.Close()
			}))
			defer srv.Close()
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			var noted []error
			l := &Transport{Base: tr, Note: func(_ *http.Request, err error) { noted = append(noted, err) }}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
			var body []byte
			resp, err := l.RoundTrip(req)
			if err == nil {
				body, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			if (err == nil && string(body) == whole) != survives {
				t.Errorf("%d bytes, %v after %d requests", len(body), err, sent.Load())
			}
			if want := map[bool]int32{true: 3, false: 1}[survives]; sent.Load() != want {
				t.Errorf("sent %d times, want %d", sent.Load(), want)
			}
			if survives && len(noted) != 2 {
				t.Errorf("%d faults noted: %v", len(noted), noted)
			}
		})
	}
}

// selfWriting is a body as the SDK has it, which it closes when the answer is there.
type selfWriting struct{ io.Reader }

func (selfWriting) WriteTo(io.Writer) (int64, error) { return 0, io.EOF }
func (selfWriting) Close() error                     { return nil }

func TestBodiesDontWriteThemselves(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent, err := io.ReadAll(r.Body); err != nil || len(sent) != 10<<10 {
			t.Errorf("%d bytes were sent: %v", len(sent), err)
		}
	}))
	defer srv.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, selfWriting{strings.NewReader(strings.Repeat("x", 10<<10))})
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 10 << 10
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
	resp, err := (&Transport{Base: tr}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, stays := req.Body.(selfWriting); !stays {
		t.Error("the caller's request was changed")
	}
}
