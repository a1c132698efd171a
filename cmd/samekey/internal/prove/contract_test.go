package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
)

// fronts are those of a stack, in memory: each route has a contract of its own.
type fronts struct {
	mux    *http.ServeMux
	broken string // the end of a route whose line breaks
}

// newFronts has handlers that take a time, behind presets by their routes.
func newFronts(takes time.Duration, presets map[string]func(*idem.Options)) *fronts {
	f := &fronts{mux: http.NewServeMux()}
	for route, preset := range presets {
		e := idem.New(&idem.MemoryStore{}, preset, func(o *idem.Options) {
			o.Logger, o.Scope = slog.New(slog.DiscardHandler), func(_ context.Context, r *idem.Request) (string, error) { return r.Header.Get("Authorization"), nil }
		})
		var made atomic.Int64
		h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-time.After(takes)
			id, status := made.Add(1), http.StatusCreated
			if raw, _ := io.ReadAll(r.Body); strings.Contains(string(raw), "1000") {
				status = http.StatusBadRequest
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"id":"%d"}`, id)
		}))
		f.mux.Handle(route, h)
		f.mux.Handle(route+"/", h)
	}
	return f
}

func (f *fronts) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.broken != "" && strings.HasSuffix(r.URL.Path, f.broken) {
		return nil, errors.New("connection reset by peer")
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	f.mux.ServeHTTP(w, r)
	return w.Result(), nil
}

// Each front is examined at its route, under its contract; one with another contract fails, and a broken one shows nothing.
func TestContracts(t *testing.T) {
	t.Parallel()
	none := func(*idem.Options) {}
	presets := map[string]func(*idem.Options){
		"/rides": none, "/plain": none, "/presets/stripe": idem.Stripe, "/presets/stripe-v1": idem.StripeV1, "/presets/ietf": idem.IETF, "/presets/acp": idem.ACP, "/presets/ucp": idem.UCP,
	}
	others := maps.Clone(presets)
	others["/presets/stripe"] = idem.IETF
	halfBroken := newFronts(0, presets)
	halfBroken.broken = "/plain"
	for _, test := range []struct {
		claim  string
		fronts *fronts
		api    string
		want   string
	}{
		{"http-api", nil, "https://api", "passed 11 checks hold, by 19 requests , 20 sent"},
		{"rest-api", nil, "https://api", "passed 11 checks hold, by 19 requests , 20 sent"},
		{"function-url", nil, "https://api", "passed 11 checks hold, by 19 requests , 20 sent"},
		{"stripe", nil, "https://api", "passed 9 checks hold, by 19 requests , 20 sent"},
		{"stripe-v1", nil, "https://api", "passed 9 checks hold, by 19 requests , 20 sent"},
		{"ietf", nil, "https://api", "passed 9 checks hold, by 20 requests , 21 sent"},
		{"acp", nil, "https://api", "passed 15 checks hold, by 55 requests , 56 sent"},
		{"ucp", nil, "https://api", "passed 13 checks hold, by 47 requests , 48 sent"},
		{
			"stripe", newFronts(time.Second, others), "https://api",
			`failed 5 checks hold, by 20 requests bare-refused: 400; mismatch-status: refused with 422; refusal-burns: refused with 400; the corrected request got 422; error-body: a 422 has the Content-Type "application/problem+json", 21 sent`,
		},
		{"acp", newFronts(25*time.Second, presets), "https://api", "not shown 6 checks hold, by 21 requests the examination has taken 3m0s, its limit, 22 sent"},
		{"http-api", newFronts(0, nil), "https://api", "not shown  the API answers 404 to the request that should succeed, 2 sent"},
		{"http-api", &fronts{broken: "/rides"}, "https://api", "not shown  connection reset by peer, 1 sent"},
		{"rest-api", halfBroken, "https://api", "not shown  connection reset by peer, 1 sent"},
		{"http-api", nil, "ftp://api", "not shown  the URL has to begin with http:// or https://, and name a host, 1 sent"},
		{"http-api", nil, "", "not shown  the stand-in has no such front, 0 sent"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := contracts()[slices.IndexFunc(contracts(), func(c Claim) bool { return c.Name == "contract."+test.claim })]
			if test.fronts == nil {
				test.fronts = newFronts(100*time.Millisecond, presets)
			}
			p := &Place{
				API: test.api, REST: "https://rest", URL: "https://url", HTTP: &http.Client{Transport: test.fronts}, meter: &meter{most: c.Cost},
			}
			began := time.Now()
			figure, err := c.Examine(t.Context(), p)
			r := c.judge(p, figure, err)
			if got := fmt.Sprintf("%s %s %s, %d sent", r.Status, r.Figure, r.Why, p.meter.total().Bookings); got != test.want || r.Page != "docs/use/http.md" {
				t.Errorf("%s at %q: after %s %s", test.claim, test.api, time.Since(began), got)
			}
		})
	}
}
