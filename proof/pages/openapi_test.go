package pages_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/pagetest"
)

// fragment is the OpenAPI description of the engine's own answers.
const fragment = "docs/use/openapi/idempotency.yaml"

type object = map[string]any

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

// The fragment is made by playing the situations of docs/use/http.md.
func TestOpenAPIFragment(t *testing.T) {
	t.Parallel()
	text, err := yaml.Marshal(openAPI(t))
	if err != nil {
		t.Fatal(err)
	}
	is := "# Generated: go test -C proof ./pages -run OpenAPI -update\n" + string(text)
	file := filepath.Join(root, fragment)
	if *update {
		if err := os.WriteFile(file, []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(was) != is {
		t.Errorf("%s is out of date (go test -C proof ./pages -run OpenAPI -update):\n%s", fragment, pagetest.FirstDifference(string(was), is))
	}
}

func openAPI(t *testing.T) object {
	responses := make(object)
	var codes []string
	for _, all := range refusals(t, contracts[0]) {
		for _, r := range all {
			if c := r.code(); c != "" && !slices.Contains(codes, c) {
				codes = append(codes, c)
			}
		}
	}
	slices.Sort(codes)
	for prefix, c := range map[string]contract{"Idempotency": contracts[0], "Stripe": contracts[1]} {
		for status, all := range refusals(t, c) {
			responses[prefix+strconv.Itoa(status)] = described(prefix, all)
		}
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Idempotency keys", "version": "1",
			"description": "Refer to these components from your own description: docs/use/http.md of Samekey tells how.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"paths": object{},
		"components": object{
			"parameters": parameters(), "headers": headerComponents(), "responses": responses, "schemas": schemas(codes),
		},
	}
}

// bareKey and quotedKey are the forms of a key that clients should send.
const (
	bareKey   = `[!#-+\--~][!-+\--~]{0,254}`
	quotedKey = `"([ !#-\[\]-~]|\\["\\]){1,255}"`
)

func parameters() object {
	parameter := func(required bool, pattern, example, description string) object {
		return object{
			"name": idem.KeyHeader, "in": "header", "required": required, "description": description,
			"schema": object{"type": "string", "pattern": "^(" + pattern + ")$"}, "example": example,
		}
	}
	const about = "A unique key for this operation, such as a UUID, and the same key with every retry of it. A retry gets the first answer."
	return object{
		"IdempotencyKey":         parameter(true, bareKey+"|"+quotedKey, "8e03978e-40d5-43e8-bc93-6894a57f9324", about),
		"IdempotencyKeyOptional": parameter(false, bareKey+"|"+quotedKey, "8e03978e-40d5-43e8-bc93-6894a57f9324", about+" A request without a key runs every time."),
		"IdempotencyKeyQuoted":   parameter(true, quotedKey, `"8e03978e-40d5-43e8-bc93-6894a57f9324"`, about+" The key is in double quotes, a string of RFC 9651."),
	}
}

// headerSchemas are the headers of the engine, as the page has them.
var headerSchemas = map[string]struct {
	component, description string
	schema                 object
}{
	idem.KeyHeader:        {"IdempotencyKey", "The key, as it was sent.", object{"type": "string"}},
	"Idempotency-Expires": {"IdempotencyExpires", "An HTTP date. After it, a retry is a new request: don't retry later.", object{"type": "string"}},
	idem.ReplayedHeader:   {"IdempotentReplayed", "This is the answer to an earlier request with the key.", object{"type": "string", "const": "true"}},
	"Idempotency-Status":  {"IdempotencyStatus", "`unstored`: the request was carried out, but its answer could not be stored; don't send it again. `ignored`: nothing was done with the key.", object{"enum": []string{"ignored", "unstored"}, "type": "string"}},
	"Retry-After":         {"IdempotencyRetryAfter", "Seconds until a retry with the same key.", object{"type": "integer", "minimum": 0}},
	"Location":            {"IdempotencyLocation", "The status resource of the operation.", object{"type": "string"}},
	"Cache-Control":       {"IdempotencyCacheControl", "The engine's own answers are not cached.", object{"type": "string", "const": "no-store"}},
	"Stripe-Should-Retry": {"IdempotencyShouldRetry", "Whether a retry helps.", object{"enum": []string{"false", "true"}, "type": "string"}},
}

func headerComponents() object {
	all := make(object)
	for _, h := range headerSchemas {
		all[h.component] = object{"description": h.description, "schema": h.schema}
	}
	return all
}

// described is the component of the answers of one status. A header is required if all of them
// have it.
func described(prefix string, all []refusal) object {
	count := make(map[string]int)
	examples, names := make(object), []string(nil)
	for _, r := range all {
		for name := range r.response.Header {
			count[name]++
		}
		var body any
		if json.Unmarshal(r.response.Body, &body) != nil {
			continue
		}
		if code := r.code(); code != "" {
			examples[code] = object{"value": body}
			if !slices.Contains(names, code) {
				names = append(names, code)
			}
		}
	}
	headers := make(object)
	for name, n := range count {
		if name == "Content-Type" {
			continue
		}
		ref := object{"$ref": "#/components/headers/" + headerSchemas[name].component}
		if n == len(all) { // a reference can't say that it is required
			ref = object{"description": headerSchemas[name].description, "schema": headerSchemas[name].schema, "required": true}
		}
		headers[name] = ref
	}
	media := object{"schema": object{"$ref": "#/components/schemas/" + prefix + "Error"}}
	description := "One of: " + strings.Join(names, ", ") + "."
	if len(examples) > 0 {
		media["examples"] = examples
	}
	if all[0].response.Status == http.StatusAccepted {
		media["schema"] = object{"$ref": "#/components/schemas/IdempotencyInFlight"}
		description = "The first request with this key is in flight; its outcome will be at the status resource."
	}
	return object{"description": description, "headers": headers, "content": object{all[0].response.Header.Get("Content-Type"): media}}
}

func schemas(codes []string) object {
	text, number := object{"type": "string"}, object{"type": "integer"}
	return object{
		"IdempotencyError": object{
			"description": "A problem of RFC 9457. docs/use/http.md of Samekey explains each code.",
			"type":        "object", "required": []string{"type", "title", "status", "detail", "code"},
			"properties": object{"type": object{"type": "string", "format": "uri"}, "title": text, "status": number, "detail": text, "code": object{"type": "string", "enum": codes}},
		},
		"StripeError": object{
			"description": "An error in the form of Stripe's.",
			"type":        "object", "required": []string{"error"},
			"properties": object{"error": object{
				"type": "object", "required": []string{"type", "message"},
				"properties": object{"code": text, "message": text, "type": object{"type": "string", "enum": []string{"api_error", "idempotency_error", "invalid_request_error"}}},
			}},
		},
		"IdempotencyInFlight": object{
			"type": "object", "required": []string{"status"},
			"properties": object{"status": object{"type": "string", "const": "in_flight"}, "recovery_point": text},
		},
	}
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
