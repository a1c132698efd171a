package pages_test

import (
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
)

// fragment is the OpenAPI description of the engine's own answers.
const fragment = "docs/use/openapi/idempotency.yaml"

// refusal is an answer that the engine gives in place of the handler.
type refusal struct {
	situation string
	response  idem.Response
}

// refusals plays all situations under a contract, and returns the engine's own
// answers by their status.
func refusals(t *testing.T, c contract) map[int][]refusal {
	t.Helper()
	all := make(map[int][]refusal)
	for _, sit := range append(slices.Clone(situations), situation{name: "the status of a key that nobody knows", opt: accept, act: statusOfUnknown}) {
		play(t, c, sit.opt, func(s *stage) {
			r := sit.act(s).Response
			if r.Header.Get("Content-Type") != contentType && len(r.Body) > 0 {
				all[r.Status] = append(all[r.Status], refusal{sit.name, r})
			}
		})
	}
	return all
}
