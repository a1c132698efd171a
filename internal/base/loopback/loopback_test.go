package loopback_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/samekey/samekey/internal/base/loopback"
)

const own = "127.0.0.1:3002"

func TestGuard(t *testing.T) {
	t.Parallel()
	page := func(r *http.Request) bool { return r.URL.Path == "/" }
	for _, tt := range []struct {
		name, path, host string
		header           []string
		want             int
	}{
		{"a program", "/api", own, nil, 200},
		{"by its name", "/api", "localhost:3002", nil, 200},
		{"by its name, in capitals", "/api", "LOCALHOST:3002", nil, 200},
		{"by IPv6", "/api", "[::1]:3002", nil, 200},
		{"its own page", "/api", own, []string{"Origin", "http://" + own, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, 200},
		{"a rebound name", "/api", "evil.example:3002", nil, 421},
		{"a rebound name and its origin", "/api", "evil.example:3002", []string{"Origin", "http://evil.example:3002", "Sec-Fetch-Site", "same-origin"}, 421},
		{"a rebound name, for a page", "/", "evil.example:3002", nil, 421},
		{"a name that begins so", "/api", "localhost.evil.example:3002", nil, 421},
		{"another port", "/api", "127.0.0.1:1", nil, 421},
		{"no port", "/api", "127.0.0.1", nil, 421},
		{"no name", "/api", "", nil, 421},
		{"another origin", "/api", own, []string{"Origin", "https://evil.example"}, 403},
		{"another local port", "/api", own, []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"its name, with TLS", "/api", own, []string{"Origin", "https://" + own}, 403},
		{"an origin that is hidden", "/api", own, []string{"Origin", "null"}, 403},
		{"an empty origin", "/api", own, []string{"Origin", ""}, 403},
		{"two origins", "/api", own, []string{"Origin", "http://" + own, "Origin", "https://evil.example"}, 403},
		{"another site", "/api", own, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another port of the site", "/api", own, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"a link to data", "/api", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"typed, to data", "/api", own, []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 403},
		{"a link to a page", "/", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"typed, to a page", "/", own, []string{"Sec-Fetch-Site", "none"}, 200},
		{"a page as an image", "/", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
	} {
		g := loopback.Guard{Page: page, Refuse: func(w http.ResponseWriter, no loopback.Refusal) { w.WriteHeader(no.Status) }}.For("http://" + own)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.path, http.NoBody)
		r.Host = tt.host
		for i := 0; i < len(tt.header); i += 2 {
			r.Header.Add(tt.header[i], tt.header[i+1])
		}
		w, passed := httptest.NewRecorder(), false
		g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true })).ServeHTTP(w, r)
		if w.Code != tt.want || passed != (tt.want == 200) {
			t.Errorf("%s: %d, passed: %t; want %d", tt.name, w.Code, passed, tt.want)
		}
	}
}
