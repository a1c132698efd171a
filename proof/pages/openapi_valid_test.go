package pages_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/samekey/samekey/idem"
)

// load reads an OpenAPI description with the files it refers to, and checks it.
func load(t *testing.T, file string) *openapi3.T {
	t.Helper()
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	doc, err := loader.LoadFromFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return doc
}

// The components can be copied into another description: their names don't clash with
// those of an API.
func TestOpenAPINames(t *testing.T) {
	t.Parallel()
	c := load(t, fragment).Components
	var names []string
	for name := range c.Responses {
		names = append(names, name)
	}
	for name := range c.Schemas {
		names = append(names, name)
	}
	for name := range c.Headers {
		names = append(names, name)
	}
	for name := range c.Parameters {
		names = append(names, name)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "Idempoten") && !strings.HasPrefix(name, "Stripe") {
			t.Errorf("%s begins with neither Idempoten nor Stripe", name)
		}
	}
	if len(names) < 20 {
		t.Errorf("%d components: something is wrong with this test", len(names))
	}
}

// A parameter's pattern allows the keys that the engine takes, and no others.
func TestOpenAPIKeys(t *testing.T) {
	t.Parallel()
	doc := load(t, fragment)
	pattern := func(name string) *regexp.Regexp {
		return regexp.MustCompile(doc.Components.Parameters[name].Value.Schema.Value.Pattern)
	}
	for _, row := range keyRows {
		value := row.values[0]
		// A client doesn't send spaces around a key, or parameters.
		if len(row.values) > 1 || strings.Contains(value, ";") || strings.TrimSpace(value) != value {
			continue
		}
		for name, strict := range map[string]bool{"IdempotencyKey": false, "IdempotencyKeyOptional": false, "IdempotencyKeyQuoted": true} {
			if matches, taken := pattern(name).MatchString(value), parsed([]string{value}, strict) != "400"; matches != taken {
				t.Errorf("%s: %q matches: %v, is taken: %v", name, value, matches, taken)
			}
		}
	}
}

// Every answer of the engine is as the fragment has it, under each contract.
func TestOpenAPIAnswers(t *testing.T) {
	t.Parallel()
	responses := load(t, fragment).Components.Responses
	checked := 0
	for _, c := range contracts {
		prefix := map[string]string{"Stripe": "Stripe", "StripeV1": "Stripe"}[c.name]
		if prefix == "" {
			prefix = "Idempotency"
		}
		for status, all := range refusals(t, c) {
			response := responses[prefix+strconv.Itoa(status)]
			if response == nil {
				t.Errorf("%s: the fragment has no %d", c.name, status)
				continue
			}
			for _, r := range all {
				checked++
				if err := fits(response.Value, r.response); err != nil {
					t.Errorf("%s, %s: %v", c.name, r.situation, err)
				}
			}
		}
	}
	if checked < 80 {
		t.Errorf("%d answers were checked: something is wrong with this test", checked)
	}
	// It can fail.
	for _, wrong := range []idem.Response{
		{Header: http.Header{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}}, Body: []byte(`{"title":"?"}`)},
		{Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: []byte(`{}`)},
		{Header: http.Header{"Content-Type": {"text/plain"}, "Cache-Control": {"no-store"}}},
	} {
		if fits(responses["Idempotency400"].Value, wrong) == nil {
			t.Errorf("%+v fits", wrong)
		}
	}
}

// fits reports how an answer differs from its description.
func fits(want *openapi3.Response, r idem.Response) error {
	for name, h := range want.Headers {
		if h.Value.Required && r.Header.Get(name) == "" {
			return errors.New("there is no " + name)
		}
	}
	for name := range r.Header {
		if want.Headers[name] == nil && name != "Content-Type" {
			return errors.New("it has " + name)
		}
	}
	media := want.Content.Get(r.Header.Get("Content-Type"))
	if media == nil {
		return errors.New("it is " + r.Header.Get("Content-Type"))
	}
	var body any
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return err
	}
	return media.Schema.Value.VisitJSON(body, openapi3.EnableJSONSchema2020())
}

// An API's own description refers to the fragment. It is valid, and so is each answer
// to a request that it allows.
func TestOpenAPIExample(t *testing.T) {
	t.Parallel()
	doc := load(t, "docs/use/openapi/orders.yaml")
	path := doc.Paths.Find("/orders")
	route := &routers.Route{Spec: doc, Path: "/orders", PathItem: path, Method: http.MethodPost, Operation: path.Post}
	replayed := 0
	for _, sit := range situations {
		play(t, contracts[0], sit.opt, func(s *stage) {
			r := sit.act(s).Response
			if err := valid(t.Context(), route, key, r); err != nil {
				t.Errorf("%s: %v", sit.name, err)
			}
			if r.Header.Get(idem.ReplayedHeader) == "true" {
				replayed++
			}
		})
	}
	if replayed == 0 {
		t.Error("no replay was checked")
	}
	// It can fail: for a key that is none, and for an answer that isn't described.
	fine := idem.Response{Status: 201, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(`{"id":"o_1"}`)}
	if err := valid(t.Context(), route, key, fine); err != nil {
		t.Error(err)
	}
	if valid(t.Context(), route, "two words", fine) == nil || valid(t.Context(), route, "", fine) == nil {
		t.Error("a key that is none is valid")
	}
	fine.Body = []byte(`{}`)
	if valid(t.Context(), route, key, fine) == nil {
		t.Error("an order without an id is valid")
	}
}

// valid checks a request with a key, and its answer.
func valid(ctx context.Context, route *routers.Route, key string, r idem.Response) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://host/orders", strings.NewReader(`{"amount":2000}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	in := &openapi3filter.RequestValidationInput{Request: req, Route: route}
	if err := openapi3filter.ValidateRequest(ctx, in); err != nil {
		return err
	}
	return openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: r.Status, Header: r.Header, Body: io.NopCloser(bytes.NewReader(r.Body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
}

func init() {
	// The handlers of the situations have a media type of their own.
	openapi3filter.RegisterBodyDecoder(contentType, openapi3filter.JSONBodyDecoder)
}

// Every code of the page of problems is in the fragment.
func TestOpenAPICodes(t *testing.T) {
	t.Parallel()
	enum := load(t, fragment).Components.Schemas["IdempotencyError"].Value.Properties["code"].Value.Enum
	codes := regexp.MustCompile(`(?m)^### ([a-z_]+)$`).FindAllStringSubmatch(pages(t)["docs/use/http.md"], -1)
	for _, m := range codes {
		if !slices.Contains(enum, any(m[1])) {
			t.Errorf("the fragment doesn't know %s", m[1])
		}
	}
	if len(enum) != len(codes) {
		t.Errorf("%d codes in the fragment, %d on the page", len(enum), len(codes))
	}
}
