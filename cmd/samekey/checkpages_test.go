package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/check"
	"github.com/samekey/samekey/internal/testkit/checktest"
	"github.com/samekey/samekey/internal/testkit/pagetest"
)

// checks lists the checks and requests of samekey check.
func checks(*testing.T) string {
	tb := pagetest.Table{Head: []string{"check", "sends", "needs"}}
	for _, c := range check.Checks(check.Default) {
		needs := ""
		if flag, ok := strings.CutPrefix(c.Needs, "give "); ok {
			needs = pagetest.Code(flag)
		}
		tb.Add(pagetest.Code(c.Name), c.Title, needs)
	}
	return tb.String()
}

// rules lists the rules, with the sections of the contracts.
func rules(t *testing.T) string {
	t.Helper()
	tb := pagetest.Table{Head: []string{"rule", "demands", "Stripe", "IETF draft"}}
	for _, r := range check.Rules() {
		if r.Sections[check.Default] == "" {
			t.Errorf("%s is no rule of the default contract, and the page has no column for it", r.Name)
		}
		stripe := ""
		if r.Sections[check.Stripe] != "" {
			stripe = "yes"
		}
		tb.Add(pagetest.Code(r.Name), r.Says, stripe, r.Sections[check.IETF])
	}
	return tb.String()
}

// wrongServer shows the ten faults of a server, and the report about the server.
func wrongServer(t *testing.T) string {
	report := examined(t, checktest.Ten()...)
	if report.Faults != 10 {
		t.Errorf("%d faults of ten are found: %v", report.Faults, report.Broken(check.Default))
	}
	for _, f := range checktest.Faults() {
		for _, rule := range f.Breaks {
			if slices.Contains(checktest.Ten(), f.Name) && !slices.Contains(report.Broken(check.Default), rule) {
				t.Errorf("the server %s, and %s is not broken", f.Does, rule)
			}
		}
	}
	var b strings.Builder
	if err := report.Print(&b); err != nil {
		t.Fatal(err)
	}
	// The page has the table, the first fault and the last line.
	parts := strings.Split(b.String(), "\n\n")
	shown := slices.Concat(parts[:3], []string{"…"}, parts[len(parts)-1:])
	return "```text\n" + strings.Join(shown, "\n\n") + "```\n"
}

// examined returns a report about a server with faults, at orders.example.
func examined(t *testing.T, faults ...string) *check.Report {
	t.Helper()
	srv := httptest.NewServer(checktest.Wrong(check.DefaultRacers, faults...))
	t.Cleanup(srv.Close)
	plan, err := check.Make(check.Template{
		URL: "http://orders.example/orders", Header: http.Header{"Authorization": {"Bearer jane"}},
		Body: []byte(`{"item":"pizza"}`), OtherBody: []byte(`{"item":"pasta"}`), RefusedBody: []byte(`{}`),
		OtherPath: "/refunds", OtherMethod: http.MethodPut, OtherCaller: http.Header{"Authorization": {"Bearer omar"}},
		Origin: "https://shop.example",
	}, func(o *check.Options) {
		o.Name, o.Timeout, o.Total = "k3v9q2ma", 5*time.Minute, 10*time.Minute
		o.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := plan.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The page has the program's numbers.
func TestCheckPageNumbers(t *testing.T) {
	t.Parallel()
	page := strings.Join(strings.Fields(pagetest.Pages(t, "../..")["docs/use/check.md"]), " ")
	for _, text := range []string{
		fmt.Sprintf("limits the number of requests (%d)", check.DefaultRequests),
		fmt.Sprintf("`--total` the time (%g minutes)", check.DefaultTotal.Minutes()),
		fmt.Sprintf("for each answer (%g s)", check.DefaultTimeout.Seconds()),
		fmt.Sprintf("begins with `%s`", check.DefaultPrefix),
		fmt.Sprintf("is too large (%d MB)", check.DefaultMaxBody>>20),
		map[int]string{5: "sends five requests at once"}[check.DefaultRacers],
	} {
		if text == "" || !strings.Contains(page, text) {
			t.Errorf("docs/use/check.md doesn't say %q", text)
		}
	}
}
