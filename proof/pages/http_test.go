package pages_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
)

// generators make the blocks of the pages.
var generators = map[string]func(*testing.T) string{
	"signal-metrics": metricsTable,
	"presets":        presets,
	"keys":           keys,
	"modes":          modes,
	"answers":        answers,
	"bodies": func(t *testing.T) string {
		shown := body(t, contracts[0], contracts[3])
		body(t, contracts[1], contracts[2]) // held, and not on the page
		return "```text\n" + shown + "```\n"
	},
	"stored":         stored,
	"stored-headers": storedHeaders,
	"retry-signs":    retrySigns,
	"status":         status,
	"observed":       observed,
}

// byContract is a table with a column for each contract.
func byContract(first string, more ...string) table { return columnsOf(contracts, first, more...) }

func columnsOf(contracts []contract, first string, more ...string) table {
	tb := table{Head: []string{first}}
	for _, c := range contracts {
		name := c.name
		if c.name != "default" {
			name = code(name)
		}
		tb.Head = append(tb.Head, name)
	}
	tb.Head = append(tb.Head, more...)
	return tb
}

// problem is a body of the default shape.
type problem struct{ Code string }

func codeOf(r idem.Response) string {
	var p problem
	if r.Header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(r.Body, &p) != nil {
		return ""
	}
	return p.Code
}

// answers: what comes back in each situation, and what the contracts have in common.
func answers(t *testing.T) string {
	tb := table{Head: []string{"situation", "default, `IETF`", "`Stripe`, `StripeV1`", "`code`", "further headers"}}
	for _, sit := range situations {
		var ours, stripes []string // statuses, once each
		var problem, headers string
		for _, c := range contracts {
			play(t, c, sit.opt, func(s *stage) {
				o := sit.act(s)
				statuses := &ours
				if strings.HasPrefix(c.name, "Stripe") {
					statuses = &stripes
				}
				got := statusOf(o.Result)
				if o.ran {
					got += " runs"
				}
				if !slices.Contains(*statuses, got) {
					*statuses = append(*statuses, got)
				}
				switch c.name {
				case "default":
					problem = codeOf(o.Response)
					headers = furtherHeaders(t, sit.name, problem, o.Header)
				case "Stripe":
					retry := ""
					if problem != "" {
						retry = strconv.FormatBool(o.Header.Get("Retry-After") != "" || problem == "internal_error")
					}
					if got := o.Header.Get("Stripe-Should-Retry"); got != retry {
						t.Errorf("%s: Stripe-Should-Retry is %q, want %q", sit.name, got, retry)
					}
				}
			})
		}
		if problem != "" {
			problem = fmt.Sprintf("[%s](#%s)", code(problem), problem)
		}
		if sit.hidden {
			continue
		}
		tb.Add(sit.name, strings.Join(ours, ", "), strings.Join(stripes, ", "), problem, headers)
	}
	return tb.String()
}

// expiring has the codes of the answers with Idempotency-Expires.
var expiring = []string{"", "idempotency_in_flight", "idempotency_key_mismatch", "idempotency_answer_not_kept", "idempotency_encoding"}

// furtherHeaders are an answer's headers that the page has no rule for.
func furtherHeaders(t *testing.T, situation, problem string, h http.Header) string {
	t.Helper()
	own := map[bool]string{true: "no-store"}[h.Get("Content-Type") != contentType]
	if got := h.Get("Cache-Control"); got != own {
		t.Errorf("%s: Cache-Control is %q, want %q", situation, got, own)
	}
	if got := h.Get(idem.KeyHeader); got != "" && got != key {
		t.Errorf("%s: the key is echoed as %q, want %q", situation, got, key)
	}
	expires := h.Get(idem.KeyHeader) != "" && h.Get("Idempotency-Status") == "" && slices.Contains(expiring, problem)
	if got := h.Get("Idempotency-Expires") != ""; got != expires {
		t.Errorf("%s: it is %t that Idempotency-Expires is there, want %t", situation, got, expires)
	}
	var all []string
	for name := range h {
		switch name {
		case idem.KeyHeader, idem.ReplayedHeader, "Cache-Control", "Content-Type", "Idempotency-Expires":
		default:
			all = append(all, code(name)+" "+shortened(h.Get(name)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func statusOf(r idem.Result) string {
	s := strconv.Itoa(max(r.Status, http.StatusOK))
	if r.Status == 0 && !r.Passed {
		s = "none"
	}
	if r.Replayed {
		s += " replay"
	}
	return s
}

// shortened is a header's value as the page has it: dates from now on.
func shortened(value string) string {
	at, err := http.ParseTime(value)
	left := time.Until(at).Round(time.Hour)
	switch {
	case err == nil && left < 0:
		return fmt.Sprintf("%g h ago", -left.Hours())
	case err == nil:
		return fmt.Sprintf("in %g h", left.Hours())
	case value == "":
		return ""
	case value == contentType:
		return "handler's"
	case value == key:
		return "as sent"
	}
	return code(strings.TrimPrefix(value, "application/"))
}

// body is the first of the answers in place of the handler's. The page explains each of
// them, and same is a contract that has the same ones.
func body(t *testing.T, c, same contract) (shown string) {
	seen := make(map[string]bool)
	for _, sit := range append(situations, situation{name: "status of an unknown key", opt: accept, act: statusOfUnknown}) {
		var first outcome
		play(t, c, sit.opt, func(s *stage) { first = sit.act(s) })
		play(t, same, sit.opt, func(s *stage) {
			// StripeV1 takes requests without a key; IETF's keys are quoted, and it says so.
			o := sit.act(s)
			o.Body = bytes.ReplaceAll(o.Body, []byte(", in double quotes (a string of RFC 9651)"), nil)
			if string(o.Body) != string(first.Body) && sit.name != "no key" {
				t.Errorf("%s: %s and %s answer differently:\n%s\n%s", sit.name, c.name, same.name, first.Body, o.Body)
			}
		})
		if first.Header.Get("Content-Type") == "application/problem+json" || strings.HasPrefix(string(first.Body), `{"error"`) {
			line := fmt.Sprintf("%d %s\n", first.Status, first.Body)
			shown, seen[line] = cmp.Or(shown, line), true
		}
	}
	explained := regexp.MustCompile(`(?m)^### ([a-z_]+)$`).FindAllString(pages(t)["docs/use/http.md"], -1)
	if len(seen) != len(explained) {
		t.Errorf("%s: %d bodies, docs/use/http.md explains %d", c.name, len(seen), len(explained))
	}
	return shown
}

func statusOfUnknown(s *stage) outcome {
	return outcome{Result: idem.Result{Response: s.status("nobody's")}}
}

// stored: which of the handler's answers are kept, by status.
func stored(t *testing.T) string {
	tb := byContract("the handler's status")
	kept := make(map[int][]string)
	for status := 200; status < 600; status++ {
		if http.StatusText(status) == "" {
			continue
		}
		for _, c := range contracts {
			play(t, c, nil, func(s *stage) {
				s.post(answering(status))
				cell := "free"
				if s.post(created).Replayed {
					cell = "kept"
				}
				kept[status] = append(kept[status], cell)
			})
		}
	}
	groups := make(map[string][]string) // by class and cells: statuses
	var order []string
	for _, status := range slices.Sorted(maps.Keys(kept)) {
		id := fmt.Sprint(status/100, kept[status])
		if groups[id] == nil {
			order = append(order, id)
		}
		groups[id] = append(groups[id], strconv.Itoa(status))
	}
	largest := make(map[byte]string) // by class: the group with the most statuses, which the page calls the rest
	for _, id := range order {
		if class := id[0]; len(groups[id]) > len(groups[largest[class]]) {
			largest[class] = id
		}
	}
	rest := func(id string) bool { return id == largest[id[0]] }
	slices.SortStableFunc(order, func(a, b string) int {
		last := map[bool]int{true: 1}
		return cmp.Or(cmp.Compare(a[0], b[0]), last[rest(a)]-last[rest(b)])
	})
	for _, id := range order {
		name, first := strings.Join(groups[id], ", "), groups[id][0]
		if rest(id) {
			name = first[:1] + "xx"
			if first[:1] == "4" {
				name = "other 4xx"
			}
		}
		status, _ := strconv.Atoi(first)
		tb.Add(append([]string{name}, kept[status]...)...)
	}
	challenge := []string{"402 with a challenge"}
	for _, c := range contracts {
		play(t, c, nil, func(s *stage) {
			s.post(func(context.Context) (idem.Response, error) {
				return idem.Response{Status: http.StatusPaymentRequired, Header: http.Header{"Payment-Required": {"e30="}}}, nil
			})
			cell := "free"
			if s.post(created).Replayed {
				cell = "kept"
			}
			challenge = append(challenge, cell)
		})
	}
	tb.Add(challenge...)
	return tb.String()
}
