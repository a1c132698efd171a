package pages_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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

func (r refusal) code() string {
	var body struct {
		Code  string
		Error struct{ Code, Type string }
	}
	if json.Unmarshal(r.response.Body, &body) != nil {
		return ""
	}
	switch {
	case body.Code != "":
		return body.Code
	case body.Error.Code != "":
		return body.Error.Code
	}
	return body.Error.Type // Stripe's error of a mismatch has no code
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

// openAPIResponses: the fragment's responses, and the codes of each.
func openAPIResponses(t *testing.T) string {
	tb := table{Head: []string{"status", "default, `IETF`", "`Stripe`, `StripeV1`", "`code`"}}
	ours, stripes := refusals(t, contracts[0]), refusals(t, contracts[1])
	statuses := maps.Clone(ours)
	maps.Copy(statuses, stripes)
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		row := []string{strconv.Itoa(status), "", "", ""}
		var seen, shown []string
		for i, all := range [][]refusal{ours[status], stripes[status]} {
			if len(all) > 0 {
				row[i+1] = code([]string{"Idempotency", "Stripe"}[i] + strconv.Itoa(status))
			}
			for _, r := range all {
				c := r.code()
				if c == "" || slices.Contains(seen, c) {
					continue
				}
				seen = append(seen, c)
				if i == 0 {
					shown = append(shown, fmt.Sprintf("[%s](#%s)", code(c), c))
				} else {
					shown = append(shown, code(c))
				}
			}
		}
		row[3] = strings.Join(shown, ", ")
		tb.Add(row...)
	}
	return tb.String()
}
