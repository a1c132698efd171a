package ui_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"testing"

	"github.com/samekey/samekey/cmd/samekey/internal/ui"
)

// fake is a source in memory.
type fake struct {
	mu     sync.Mutex
	about  ui.About
	rows   []ui.Row
	fails  error // the error of every call; may be nil
	acts   []ui.Action
	follow chan []string // nil: no stream
	hold   chan struct{} // Browse waits for this channel after the first page
}

func (f *fake) About() ui.About { return f.about }

func (f *fake) Size(context.Context) (ui.Size, error) {
	return ui.Size{Items: 10, Bytes: 81_920}, f.fails
}

func (f *fake) Browse(ctx context.Context, see func([]ui.Row, ui.Progress)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at := 0; at < len(f.rows) && f.fails == nil; at += 1000 {
		page := f.rows[at:min(at+1000, len(f.rows))]
		see(page, ui.Progress{Scanned: at + len(page), Units: 1})
		if f.hold != nil {
			select {
			case <-f.hold:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return f.fails
}

func (f *fake) Waiting(context.Context, int) ([]ui.Row, error) { return nil, ui.ErrNoQuery }

func (f *fake) Row(_ context.Context, pk string) (ui.Row, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rows {
		if r.PK == pk {
			return r, true, f.fails
		}
	}
	return ui.Row{}, false, f.fails
}

func (f *fake) Follow(ctx context.Context, started func(), changed func([]string)) error {
	if f.follow == nil {
		return ui.ErrNoStream
	}
	started()
	for {
		select {
		case pks := <-f.follow:
			changed(pks)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fake) Find(context.Context, ui.Search) (*ui.Found, error) {
	return &ui.Found{PKs: []string{"found"}}, f.fails
}

func (f *fake) Story(_ context.Context, pk string, personal bool) (*ui.Story, error) {
	if pk != "v1##a" {
		return nil, ui.ErrGone
	}
	s := &ui.Story{Row: ui.Row{PK: pk}, Seen: "seen"}
	if personal {
		s.Personal = &ui.Personal{Answer: &ui.Message{Body: "secret"}}
	}
	return s, f.fails
}

func (f *fake) Ask(context.Context, ui.Action) (string, error) { return "sure?", f.fails }

func (f *fake) Act(_ context.Context, a ui.Action) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acts = append(f.acts, a)
	return "done", f.fails
}

// visitor is a browser with the page.
type visitor struct {
	t      *testing.T
	base   string // http://127.0.0.1:port
	launch string // the token of the link
	token  string // the session's token
	client *http.Client
}

// visit serves src and opens the page, without a session.
func visit(t *testing.T, newest int, src ui.Source) *visitor {
	t.Helper()
	server, err := ui.Listen(t.Context(), 0, newest, src)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	base, launch, ok := strings.Cut(server.URL(), "/#token=")
	if !ok {
		t.Fatalf("the link is %s", server.URL())
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, base: base, launch: launch, client: &http.Client{Jar: jar}}
}

// enter starts a session.
func (v *visitor) enter() *visitor {
	v.t.Helper()
	var got struct{ Token string }
	status, _, body := v.send(http.MethodPost, "/api/session", map[string]string{"token": v.launch})
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK || got.Token == "" {
		v.t.Fatalf("session: %d %s, %v", status, body, err)
	}
	v.token = got.Token
	return v
}

// send sends a request like the page. change may spoil the request.
func (v *visitor) send(method, path string, in any, change ...func(*http.Request)) (status int, h http.Header, body string) {
	v.t.Helper()
	var raw []byte
	if in != nil {
		var err error
		if raw, err = json.Marshal(in); err != nil {
			v.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, bytes.NewReader(raw))
	if err != nil {
		v.t.Fatal(err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(ui.TokenHeader, v.token)
	for _, fn := range change {
		fn(req)
	}
	re, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer re.Body.Close()
	all, err := io.ReadAll(re.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if re.Header.Get("Content-Type") == "application/json" && !json.Valid(all) {
		v.t.Errorf("%s %s: %d %s is not one answer", method, path, re.StatusCode, all)
	}
	return re.StatusCode, re.Header, string(all)
}

// events returns the lines of the page's event stream.
func (v *visitor) events() *bufio.Scanner {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.base+"/api/events", http.NoBody)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set(ui.TokenHeader, v.token)
	re, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = re.Body.Close() })
	return bufio.NewScanner(re.Body)
}

func get[T any](v *visitor, path string) (out T) {
	v.t.Helper()
	status, _, body := v.send(http.MethodGet, path, nil)
	if err := json.Unmarshal([]byte(body), &out); err != nil || status != http.StatusOK {
		v.t.Fatalf("GET %s: %d %s: %v", path, status, body, err)
	}
	return out
}
