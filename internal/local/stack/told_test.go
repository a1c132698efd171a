package stack

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// A request is a line for people, with nothing that may be secret.
func TestRequestsAreTold(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &Stack{say: (&logs{w: &out}).says()}
	h := s.told(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header()["idempotent-replayed"] = []string{"true"}
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write([]byte("secret"))
	}))
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		r := httptest.NewRequestWithContext(t.Context(), method, "/rides/a%1bb?card=secret", strings.NewReader("secret"))
		r.Header.Set("Idempotency-Key", "secret")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if want := regexp.MustCompile(`^samekey \| POST /rides/a%1bb: 201 in \d+ ms, replayed\nsamekey \| GET /rides/a%1bb: 200 in \d+ ms\n$`); !want.MatchString(out.String()) {
		t.Errorf("logged %q", out.String())
	}
}
