package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// contracts has samekey check examine the deployed fronts: Rocket Rides, a plain handler, and one for each preset.
func contracts() (all []Claim) {
	api := func(p *Place) string { return p.API }
	for _, c := range []struct {
		name, text      string
		url             func(*Place) string
		route, contract string
		requests        int
		onStandIn       string
	}{
		{"http-api", "the deployed API keeps the contract of idempotency keys", api, "/rides", "default", 40, ""},
		{"rest-api", "a REST API keeps the contract", func(p *Place) string { return p.REST }, "/plain", "default", 40, ""},
		{"function-url", "a function URL keeps the contract", func(p *Place) string { return p.URL }, "/plain", "default", 40, "a stand-in serves no function URLs"},
		{"stripe", "the preset keeps the contract of Stripe's API v2", api, "/presets/stripe", "stripe", 40, ""},
		{"stripe-v1", "the preset keeps the contract of Stripe's API v1", api, "/presets/stripe-v1", "stripe", 40, ""},
		{"ietf", "the preset keeps the contract of the IETF draft", api, "/presets/ietf", "ietf", 40, ""},
		{"acp", "the preset keeps the contract of the Agentic Commerce Protocol", api, "/presets/acp", "acp", 80, ""},
		{"ucp", "the preset keeps the contract of the Universal Commerce Protocol", api, "/presets/ucp", "ucp", 80, ""},
	} {
		all = append(all, Claim{
			Name: "contract." + c.name, Text: c.text, Page: "docs/use/http.md", Figure: "# checks hold, by # requests",
			Cost: Cost{Bookings: c.requests + 1}, OnStandIn: c.onStandIn,
			Examine: func(ctx context.Context, p *Place) (string, error) {
				return p.contract(ctx, c.url(p), c.route, c.contract, c.requests)
			},
		})
	}
	return all
}

func (p *Place) contract(ctx context.Context, url, route, contract string, requests int) (string, error) {
	if url == "" {
		return "", notSeen(errors.New("the stand-in has no such front"))
	}
	b := newBooking("warm", 0)
	b.url, b.route = url, route
	if _, err := p.book(ctx, b); err != nil { // a cold start isn't the contract's
		return "", notSeen(err)
	}
	if err := p.meter.add(Cost{Bookings: requests}); err != nil {
		return "", err
	}
	args := []string{
		"check", "--json", "--yes", "--contract", contract, "--requests", strconv.Itoa(requests), "--total", "3m", "--header-env", "Authorization=PROVE_CALLER",
		"--other-caller-env", "Authorization=PROVE_OTHER", "--body", string(bodyAt(1)), "--other-body", string(bodyAt(2)), "--refused-body", `{"origin_lat": 1000}`,
	}
	if strings.HasSuffix(route, "/stripe-v1") {
		args = append(args, "--key-optional")
	}
	cmd := exec.CommandContext(ctx, p.Samekey, append(args, url+route)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.Env = append(os.Environ(), "PROVE_CALLER=Bearer "+jane, "PROVE_OTHER=Bearer "+omar)
	ended := cmd.Run() // not by 0, if a rule is broken
	var report struct {
		Requests int    `json:"requests"`
		Trouble  string `json:"trouble"`
		Checks   []struct {
			Under  map[string]string `json:"under"`
			Faults []struct {
				Rule   string            `json:"rule"`
				Seen   string            `json:"seen"`
				Breaks map[string]string `json:"breaks"`
			} `json:"faults"`
		} `json:"checks"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return "", notSeen(fmt.Errorf("samekey check: %w: %s", cmp.Or(ended, err), strings.TrimSpace(said.String())))
	}
	var broken []string
	seen := 0
	for _, c := range report.Checks {
		if c.Under[contract] == "ok" {
			seen++
		}
		for _, f := range c.Faults {
			if _, breaks := f.Breaks[contract]; breaks {
				broken = append(broken, f.Rule+": "+f.Seen)
			}
		}
	}
	figure := fmt.Sprintf("%d checks hold, by %d requests", seen, report.Requests)
	switch {
	case len(broken) > 0:
		return figure, errors.New(strings.Join(broken, "; "))
	case report.Trouble != "" || seen == 0:
		return figure, notSeen(errors.New(cmp.Or(report.Trouble, "samekey check says nothing")))
	}
	return figure, nil
}
