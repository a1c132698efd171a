package idem_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
)

// A retry of a conditional edit names the version that its first run has changed. It
// gets the first answer all the same; a layer before the engine would refuse it. A 412
// is kept, unless Options.Stored leaves it out; with the header in the fingerprint a key
// belongs to one version.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	type step struct {
		key, version string
		status       int
		replayed     string
	}
	for name, tc := range map[string]struct {
		options func(*idem.Options)
		outside bool // the check is a layer before the engine
		steps   []step
		version string // at the end
	}{
		"default": {func(*idem.Options) {}, false, []step{
			{"a", "v", 200, ""},
			{"a", "v", 200, "true"},
			{"a", "vx", 200, "true"},
			{"b", "v", 412, ""},
			{"b", "vx", 412, "true"},
			{"c", "vx", 200, ""},
		}, "vxx"},
		"412 is not kept": {func(o *idem.Options) {
			o.Stored = func(r idem.Response) bool { return r.Status != http.StatusPreconditionFailed && idem.DefaultStored(r) }
		}, false, []step{{"a", "old", 412, ""}, {"a", "v", 200, ""}, {"a", "v", 200, "true"}}, "vx"},
		"the header counts": {func(o *idem.Options) { o.Fingerprint.Headers = []string{"If-Match"} }, false, []step{
			{"a", "v", 200, ""}, {"a", "v", 200, "true"}, {"a", "vx", 422, ""},
		}, "vx"},
		"a layer before the engine": {func(*idem.Options) {}, true, []step{{"a", "v", 200, ""}, {"a", "v", 412, ""}}, "vx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := "v"
			edit := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { version += "x"; _, _ = w.Write([]byte(version)) }))
			check := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("If-Match") != version {
						w.WriteHeader(http.StatusPreconditionFailed)
						return
					}
					next.ServeHTTP(w, r)
				})
			}
			e := idem.New(&idem.MemoryStore{}, idem.OneScope, func(o *idem.Options) { o.MinKey = 1 }, tc.options)
			h := e.Middleware(check(edit))
			if tc.outside {
				h = check(e.Middleware(edit))
			}
			for i, s := range tc.steps {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/articles/1", strings.NewReader(`{"title":"x"}`))
				r.Header.Set("Idempotency-Key", s.key)
				r.Header.Set("If-Match", s.version)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != s.status || w.Header().Get("Idempotent-Replayed") != s.replayed {
					t.Errorf("step %d: got %d, replayed %q, want %d, %q", i, w.Code, w.Header().Get("Idempotent-Replayed"), s.status, s.replayed)
				}
			}
			if version != tc.version {
				t.Errorf("the article is at %s, want %s", version, tc.version)
			}
		})
	}
}
