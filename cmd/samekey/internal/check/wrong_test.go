package check_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/check"
	"github.com/samekey/samekey/internal/base/storedheaders"
	"github.com/samekey/samekey/internal/testkit/checktest"
)

// orders returns a template for checktest.Server with which every check is made.
func orders(url string) check.Template {
	return check.Template{
		URL: url + "/orders", Header: http.Header{"Authorization": {"Bearer s3cret-of-jane"}},
		Body: []byte(`{"item":"pizza"}`), OtherBody: []byte(`{"item":"pasta"}`), RefusedBody: []byte(`{"item":""}`),
		OtherPath: "/refunds", OtherMethod: "PUT", OtherCaller: http.Header{"Authorization": {"Bearer s3cret-of-omar"}},
		Origin: "https://shop.example",
	}
}

// examine runs an examination of h, which is fast: the time limits stop only a test that hangs.
func examine(t *testing.T, h http.Handler, template func(url string) check.Template, optFns ...func(*check.Options)) *check.Report {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	plan, err := check.Make(template(srv.URL), append([]func(*check.Options){patient}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	report, err := plan.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Requests > plan.Requests {
		t.Errorf("%d requests were sent, at most %d were announced", report.Requests, plan.Requests)
	}
	var shown strings.Builder
	if err := report.Print(&shown); err != nil || strings.Contains(shown.String(), "s3cret") {
		t.Errorf("%v in the report:\n%s", err, &shown)
	}
	return report
}

func patient(o *check.Options) { o.Timeout, o.Total = 5*time.Minute, 10*time.Minute }

// The API without faults keeps the default contract, and every check is made.
func TestRightServer(t *testing.T) {
	t.Parallel()
	server := checktest.Wrong(check.DefaultRacers)
	report := examine(t, server, orders)
	if len(report.Broken(check.Default)) != 0 || report.Faults != 0 {
		t.Errorf("%d faults: %+v", report.Faults, report.Checks)
	}
	for _, o := range report.Checks {
		if o.Why != "" || o.Under[check.Default] != check.OK {
			t.Errorf("%s: %s %s", o.Check, o.Under[check.Default], o.Why)
		}
	}
	if len(report.Notes) > 0 {
		t.Errorf("notes %q", report.Notes)
	}
	if n := len(check.Checks(check.Default)); len(report.Checks) != n {
		t.Errorf("%d checks of %d were made", len(report.Checks), n)
	}
	plan, err := check.Make(orders("http://host"))
	if err != nil || server.Orders() != plan.Effects {
		t.Errorf("%v: %d orders were taken, %d were announced", err, server.Orders(), plan.Effects)
	}
}

// A replay without a header about the content or its place breaks a rule.
// Other headers may be missing, since a gateway may write them on each answer.
func TestHeadersOfReplays(t *testing.T) {
	t.Parallel()
	for _, header := range storedheaders.All() {
		if http.CanonicalHeaderKey(header.Name) != header.Name {
			t.Errorf("%s is not the header's canonical name", header.Name)
		}
		server := checktest.Wrong(check.DefaultRacers)
		report := examine(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			server.ServeHTTP(rec, r)
			maps.Copy(w.Header(), rec.Header())
			if rec.Header().Get("Idempotent-Replayed") == "" {
				w.Header().Set(header.Name, "en")
			} else {
				w.Header().Del(header.Name)
			}
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		}), orders)
		if got := slices.Contains(report.Broken(check.Default), "replay-headers"); got != header.Content {
			t.Errorf("a replay without %s is found: %t, want %t", header.Name, got, header.Content)
		}
	}
}

// The checks find exactly the rules that each planted fault breaks.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	for _, f := range checktest.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			server := checktest.Wrong(check.DefaultRacers, f.Name)
			report := examine(t, server, orders)
			if diff := cmp.Diff(f.Breaks, report.Broken(check.Default)); diff != "" {
				t.Errorf("a server that %s breaks (-want +got):\n%s%+v", f.Does, diff, report.Checks)
			}
			if plan, err := check.Make(orders("http://host")); err != nil || server.Orders() > plan.Most {
				t.Errorf("%v: %d orders were taken, at most %d were announced", err, server.Orders(), plan.Most)
			}
		})
	}
}

// Every rule has a planted fault, which shows that the rule can fail.
func TestEveryRuleHasAFault(t *testing.T) {
	t.Parallel()
	broken := make(map[string]bool)
	for _, f := range checktest.Faults() {
		for _, r := range f.Breaks {
			broken[r] = true
		}
	}
	for _, r := range check.Rules() {
		if !broken[r.Name] {
			t.Errorf("no fault breaks %s", r.Name)
		}
		delete(broken, r.Name)
	}
	if len(broken) > 0 {
		t.Errorf("faults break rules that there are not: %v", broken)
	}
}
