package prove

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/check"
)

const contractRequests = check.DefaultRequests / 2

// contracts has samekey check examine the deployed fronts: Rocket Rides, a plain handler, and one for each preset.
func contracts() []Claim {
	all := make([]Claim, 0, 8)
	all = append(
		all,
		Claim{
			Name: "contract.http-api", Text: "the deployed API keeps the contract of idempotency keys", Cost: Cost{Bookings: contractRequests + 1},
			Examine: func(ctx context.Context, p *Place) (string, error) { return p.contract(ctx, p.API, "/rides") },
		},
		Claim{
			Name: "contract.rest-api", Text: "a REST API keeps the contract", Cost: Cost{Bookings: contractRequests + 1},
			Examine: func(ctx context.Context, p *Place) (string, error) { return p.contract(ctx, p.REST, "/plain") },
		},
		Claim{
			Name: "contract.function-url", Text: "a function URL keeps the contract", Cost: Cost{Bookings: contractRequests + 1}, OnStandIn: "a stand-in serves no function URLs",
			Examine: func(ctx context.Context, p *Place) (string, error) { return p.contract(ctx, p.URL, "/plain") },
		},
	)
	for _, preset := range []struct {
		name, of, contract string
		requests           int
	}{
		{"stripe", "Stripe's API v2", check.Stripe, contractRequests},
		{"stripe-v1", "Stripe's API v1", check.Stripe, contractRequests},
		{"ietf", "the IETF draft", check.IETF, contractRequests},
		{"acp", "the Agentic Commerce Protocol", check.ACP, check.DefaultRequests},
		{"ucp", "the Universal Commerce Protocol", check.UCP, check.DefaultRequests},
	} {
		all = append(all, Claim{
			Name: "contract." + preset.name, Text: "the preset keeps the contract of " + preset.of, Cost: Cost{Bookings: preset.requests + 1},
			Examine: func(ctx context.Context, p *Place) (string, error) {
				return p.contract(ctx, p.API, "/presets/"+preset.name, func(o *check.Options) { o.Contract, o.Requests = preset.contract, preset.requests })
			},
		})
	}
	for i := range all {
		all[i].Page, all[i].Figure = "docs/use/http.md", "# checks hold, by # requests"
	}
	return all
}

func (p *Place) contract(ctx context.Context, url, route string, optFns ...func(*check.Options)) (string, error) {
	if url == "" {
		return "", notSeen(errors.New("the stand-in has no such front"))
	}
	b := newBooking("warm", 0)
	b.url, b.route = url, route
	if _, err := p.book(ctx, b); err != nil { // a cold start isn't the contract's
		return "", notSeen(err)
	}
	plan, err := check.Make(check.Template{
		URL: url + route, Header: http.Header{"Authorization": {"Bearer " + jane}, "Content-Type": {"application/json"}},
		Body: bodyAt(1), OtherBody: bodyAt(2), RefusedBody: []byte(`{"origin_lat": 1000}`), OtherCaller: http.Header{"Authorization": {"Bearer " + omar}},
		KeyOptional: strings.HasSuffix(route, "/stripe-v1"),
	}, append([]func(*check.Options){func(o *check.Options) {
		o.Transport, o.Requests, o.Total = p.counted(), contractRequests, 3*time.Minute
	}}, optFns...)...)
	if err != nil {
		return "", notSeen(err)
	}
	report, err := plan.Run(ctx)
	if err != nil {
		return "", notSeen(err)
	}
	var broken []string
	seen := 0
	for _, o := range report.Checks {
		if o.Under[report.Contract] == check.OK {
			seen++
		}
		for _, f := range o.Faults {
			if _, breaks := f.Breaks[report.Contract]; breaks {
				broken = append(broken, f.Rule+": "+f.Seen)
			}
		}
	}
	figure := fmt.Sprintf("%d checks hold, by %d requests", seen, report.Requests)
	switch {
	case len(broken) > 0:
		return figure, errors.New(strings.Join(broken, "; "))
	case report.Trouble != "":
		return figure, notSeen(errors.New(report.Trouble))
	}
	return figure, nil
}
