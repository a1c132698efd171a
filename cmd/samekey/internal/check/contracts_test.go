package check_test

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/samekey/samekey/cmd/samekey/internal/check"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/checktest"
)

// shop is a handler behind the engine's middleware.
func shop(race *checktest.Race, optFns ...func(*idem.Options)) http.Handler {
	var mu sync.Mutex
	orders := 0
	take := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		race.Inside(r.Context(), r.Header.Get("Idempotency-Key"))
		body, err := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		allow(w, r)
		if err != nil || strings.Contains(string(body), `""`) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		orders++
		id := strconv.Itoa(orders)
		mu.Unlock()
		w.Header().Set("Location", r.URL.Path+"/"+id)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"order":`+id+`}`)
	})
	engine := idem.New(&idem.MemoryStore{}, append([]func(*idem.Options){callertest.ByToken}, append(optFns, func(o *idem.Options) {
		o.CORS = idem.CORS{Origins: []string{"https://shop.example"}}
	})...)...)
	return race.Outside(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			allow(w, r)
			return
		}
		engine.Middleware(take).ServeHTTP(w, r)
	}))
}

// allow is the CORS layer of the shop's handlers.
func allow(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "https://shop.example")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Expose-Headers", "Idempotent-Replayed, Idempotency-Expires")
}

// Each preset keeps the contract that it is named after.
func TestPresets(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, contract string
		preset         func(*idem.Options)
		keyOptional    bool
		notSeen        []string // checks that see nothing
	}{
		{"default", check.Default, func(*idem.Options) {}, false, nil},
		{"Stripe", check.Stripe, idem.Stripe, false, nil},
		{"StripeV1", check.Stripe, idem.StripeV1, true, nil},
		// The preset stores a 400 for invalid input, as the draft demands.
		{"IETF", check.IETF, idem.IETF, false, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			report := examine(t, shop(&checktest.Race{N: check.DefaultRacers}, tc.preset), func(url string) check.Template {
				template := orders(url)
				template.KeyOptional = tc.keyOptional
				return template
			}, func(o *check.Options) { o.Contract = tc.contract })
			if report.Faults != 0 {
				t.Errorf("%v: %+v", report.Broken(tc.contract), report.Checks)
			}
			for _, o := range report.Checks {
				if o.Why != "" {
					t.Errorf("%s was not made: %s", o.Check, o.Why)
				}
			}
			if !slices.Equal(report.Notes, nil) {
				t.Errorf("notes %q", report.Notes)
			}
		})
	}
}

// A report also names faults by other contracts than its own: Stripe and
// the draft differ in statuses, errors and the storing of a 400.
func TestOtherContracts(t *testing.T) {
	t.Parallel()
	report := examine(t, shop(&checktest.Race{N: check.DefaultRacers}, idem.IETF), orders)
	for contract, want := range map[string][]string{
		check.Default: {"bare-refused", "refusal-burns"},
		check.Stripe:  {"bare-refused", "error-body", "mismatch-status", "refusal-burns"},
		check.IETF:    nil,
	} {
		if got := report.Broken(contract); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", contract, got, want)
		}
	}
	if report.Faults != 2 {
		t.Errorf("%d faults are counted, want those of the default", report.Faults)
	}
}
