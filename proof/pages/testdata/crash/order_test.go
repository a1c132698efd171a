package orders

import (
	"context"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
)

func TestBuySurvivesCrashes(t *testing.T) {
	idemtest.CrashEverywhere(t, func(ctx context.Context, w *idemtest.World, _ *idem.Request) (idem.Response, error) {
		return Shop{w.Client()}.Buy(ctx)
	}, idem.Request{Key: "7f0c", Method: "POST", Path: "/orders", Identity: idem.Identity{Kind: "jwt", Subject: "jane"}}, nil)
}
