package prove

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/cli/check"
)

const contractRequests = check.DefaultRequests

// contract has samekey check examine the deployed API.
func contract() Claim {
	return Claim{
		Name: "contract.http-api", Text: "the deployed API keeps the contract of idempotency keys", Page: "docs/use/http.md",
		Figure: "# checks hold, by # requests", Cost: Cost{Bookings: contractRequests + 1}, Examine: examineContract,
	}
}

func examineContract(ctx context.Context, p *Place) (string, error) {
	if _, err := p.book(ctx, newBooking("warm", 0)); err != nil { // a cold start isn't the contract's
		return "", notSeen(err)
	}
	plan, err := check.Make(check.Template{
		URL: p.API + "/rides", Header: http.Header{"Authorization": {"Bearer " + jane}, "Content-Type": {"application/json"}},
		Body: bodyAt(1), OtherBody: bodyAt(2), RefusedBody: []byte(`{"origin_lat": 1000}`), OtherCaller: http.Header{"Authorization": {"Bearer " + omar}},
	}, func(o *check.Options) {
		o.Transport, o.Requests, o.Total = p.counted(), contractRequests, 3*time.Minute
	})
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
