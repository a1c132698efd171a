package ui_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/ui"
)

// calls are all calls of the page.
var calls = []struct {
	method, path string
	in           any
}{
	{"GET", "/api/about", nil},
	{"GET", "/api/size", nil},
	{"GET", "/api/requests", nil},
	{"GET", "/api/record?pk=v1%23%23a", nil},
	{"POST", "/api/data", map[string]string{"pk": "v1##a"}},
	{"POST", "/api/find", ui.Search{Any: "x"}},
	{"POST", "/api/ask", ui.Action{Do: "retry", PK: "v1##a", Seen: "seen", By: "jane"}},
	{"POST", "/api/act", ui.Action{Do: "retry", PK: "v1##a", Seen: "seen", By: "jane"}},
	{"POST", "/api/scan", map[string]string{}},
	{"POST", "/api/stop", map[string]string{}},
}

// The server answers each call with a session, and refuses the call if
// any part of the session is missing or wrong.
func TestNothingWithoutASession(t *testing.T) {
	t.Parallel()
	src := &fake{}
	v := visit(t, 0, src).enter()
	own := func(r *http.Request) { r.Header.Set("Origin", v.base) }
	for _, c := range calls {
		if status, _, body := v.send(c.method, c.path, c.in, own); status != http.StatusOK {
			t.Errorf("%s %s with a session: %d %s", c.method, c.path, status, body)
		}
	}
	if len(src.acts) != 1 {
		t.Fatalf("%d acts", len(src.acts))
	}
	events := []struct {
		method, path string
		in           any
	}{{"GET", "/api/events", nil}, {"GET", "/api/unknown", nil}, {"DELETE", "/api/about", nil}}
	for _, c := range append(calls, events...) {
		for name, tt := range map[string]struct {
			spoil func(*http.Request)
			want  int
		}{
			"no cookie":             {func(r *http.Request) { r.Header.Del("Cookie") }, 401},
			"wrong cookie":          {func(r *http.Request) { r.Header.Set("Cookie", strings.Replace(r.Header.Get("Cookie"), "=", "=A", 1)) }, 401},
			"no token":              {func(r *http.Request) { r.Header.Del(ui.TokenHeader) }, 401},
			"wrong token":           {func(r *http.Request) { r.Header.Set(ui.TokenHeader, v.launch) }, 401},
			"rebound host":          {func(r *http.Request) { r.Host = "evil.example:" + v.port() }, 421},
			"no port":               {func(r *http.Request) { r.Host = "127.0.0.1" }, 421},
			"another port":          {func(r *http.Request) { r.Host = "127.0.0.1:1" }, 421},
			"a name that begins so": {func(r *http.Request) { r.Host = "localhost.evil.example:" + v.port() }, 421},
			"another origin":        {func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
			"another local port":    {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
			"no origin":             {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
			"cross-site":            {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
			"same-site":             {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
			"typed":                 {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 403},
		} {
			before := len(src.acts)
			// The cookie jar would add its cookie to the spoilt request.
			status, _, body := v.bare().send(c.method, c.path, c.in, func(r *http.Request) { r.Header.Set("Cookie", v.cookie()) }, tt.spoil)
			if status != tt.want || len(src.acts) != before || strings.Contains(body, "secret") {
				t.Errorf("%s %s, %s: %d %s, want %d", c.method, c.path, name, status, body, tt.want)
			}
		}
	}
}

func (v *visitor) port() string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(v.base, "http://"))
	return port
}

// bare returns the visitor without cookies, and with a short timeout for
// events that it must not get.
func (v *visitor) bare() *visitor {
	b := *v
	b.client = &http.Client{Timeout: 10 * time.Second}
	return &b
}

func (v *visitor) cookie() string {
	req, err := http.NewRequestWithContext(v.t.Context(), "GET", v.base+"/api/about", nil)
	if err != nil {
		v.t.Fatal(err)
	}
	all := v.client.Jar.Cookies(req.URL)
	if len(all) != 1 {
		v.t.Fatalf("cookies are %v", all)
	}
	return all[0].Name + "=" + all[0].Value
}

// Only the link's token starts a session. Scripts and other sites can't use the session's cookie.
func TestSession(t *testing.T) {
	t.Parallel()
	v := visit(t, 0, &fake{})
	for _, token := range []string{"", "x", v.launch[1:], strings.ToLower(v.launch)} {
		if status, h, body := v.send("POST", "/api/session", map[string]string{"token": token}); status != 401 || h.Get("Set-Cookie") != "" {
			t.Errorf("token %q: %d %s", token, status, body)
		}
	}
	status, h, _ := v.send("POST", "/api/session", map[string]string{"token": v.launch})
	cookie := h.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/api/"} {
		if status != 200 || !strings.Contains(cookie, want) {
			t.Errorf("%d, cookie %s lacks %s", status, cookie, want)
		}
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }
	if status, _, body := v.send("POST", "/api/session", map[string]string{"token": v.launch}, form); status != 415 {
		t.Errorf("as a form sends it: %d %s", status, body)
	}
}

// The page's files contain no data. Each answer has the headers that restrict a browser.
func TestPageIsStatic(t *testing.T) {
	t.Parallel()
	v := visit(t, 0, &fake{rows: []ui.Row{{PK: "v1##a", Route: "POST /secret"}}, about: ui.About{Table: "orders", Local: true}})
	for _, path := range []string{"/", "/main.js", "/style.css", "/icon.svg", "/api/about", "/none"} {
		status, h, body := v.send("GET", path, nil)
		if want := map[string]int{"/api/about": 401, "/none": 404}[path]; want == 0 && status != 200 || want != 0 && status != want {
			t.Errorf("GET %s: %d", path, status)
		}
		if strings.Contains(body, "secret") || strings.Contains(body, "orders") || strings.Contains(body, v.launch) {
			t.Errorf("GET %s tells %s", path, body)
		}
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if h.Get(name) != want {
				t.Errorf("GET %s: %s is %q, want %q", path, name, h.Get(name), want)
			}
		}
		csp := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("GET %s: policy %s", path, csp)
		}
	}
	if status, _, _ := v.send("POST", "/", nil); status != 405 {
		t.Errorf("POST /: %d", status)
	}
	for _, host := range []string{"localhost:", "LOCALHOST:", "[::1]:"} {
		if status, _, _ := v.send("GET", "/", nil, func(r *http.Request) { r.Host = host + v.port() }); status != 200 {
			t.Errorf("host %s: %d", host, status)
		}
	}
	// A link on another site opens the page, but not its data.
	from := func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	}
	if status, _, _ := v.send("GET", "/", nil, from); status != 200 {
		t.Errorf("a link: %d", status)
	}
	embed := func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "no-cors")
	}
	if status, _, _ := v.send("GET", "/main.js", nil, embed); status != 403 {
		t.Errorf("a script for another site: %d", status)
	}
}
