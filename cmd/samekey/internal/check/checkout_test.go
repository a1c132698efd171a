package check

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cart is a template for a merchant whose sessions are below /s/.
func cart(tp *Template) {
	tp.URL, tp.Body, tp.OtherBody = "http://host/s/", []byte(`{"a":1,"b":[1,2],"c":null}`), nil
	tp.Header, tp.Checkout.Cancel.Path = http.Header{"Authorization": {"jane"}}, "/s/{id}/cancel"
}

// of is a contract's request.
func of(line string) string {
	return strings.Replace(strings.Replace(line, "AUTH", "Authorization:jane", 1), "BODY", `{"a":1,"b":[1,2],"c":null}`, 1)
}

func lines(all ...string) []string {
	for i := range all {
		all[i] = of(all[i])
	}
	return all
}

var created, no = re(201, `{"id":"x"}`), re(422, "no")

func TestSessionScenes(t *testing.T) {
	t.Parallel()
	steady := func(names ...string) func(*examination) {
		return func(e *examination) {
			for _, n := range names {
				e.steady[n] = true
			}
		}
	}
	a, marked := re(200, "done"), re(200, "done", "Idempotent-Replayed", "true")
	const blamed = "blamed: 422 idempotency_conflict"
	operation := map[string]scene{
		"right": {
			answers: []*answer{created, a, marked, no}, want: []string{blamed, "steady: update"},
			sent: lines("POST /s/ update-session AUTH BODY", "POST /s/x update AUTH BODY", "POST /s/x update AUTH BODY", `POST /s/x update AUTH {"a":1,"b":[1,2],"c":null,"samekey_check":1}`),
		},
		"unmarked":     {answers: []*answer{created, a, a, no}, want: []string{`update-unmarked acp: Idempotent-Replayed is "" first, then ""`, blamed, "steady: update"}},
		"reran":        {answers: []*answer{created, a, re(200, "again"), no}, want: []string{"update-reran acp: first 200 with 4 bytes, then 200 with 5 bytes", blamed}},
		"mismatch":     {answers: []*answer{created, a, marked, re(409, "no")}, want: []string{"update-mismatch acp: 409, want 422", "steady: update"}},
		"lost":         {sent: lines("POST /s/ update-session AUTH BODY"), want: []string{cut}},
		"lost once":    {answers: []*answer{created}, want: []string{cut}},
		"lost again":   {answers: []*answer{created, a}, want: []string{cut}},
		"lost at last": {answers: []*answer{created, a, marked}, want: []string{cut, "steady: update"}},
		"refused":      {answers: []*answer{created, no}, want: []string{"why: the API answers 422 to it: say -update-body"}},
		"created by PUT": {
			template: func(tp *Template) { cart(tp); tp.Method, tp.OtherMethod = "PUT", "" }, answers: []*answer{created, no}, want: []string{"why: the API answers 422 to it: say -update-body"},
			sent: lines("PUT /s/ update-session AUTH BODY", "POST /s/x update AUTH BODY"),
		},
		"no session":    {answers: []*answer{no}, want: []string{"why: the API answers 422 to the creation of another session"}},
		"odd session":   {answers: []*answer{re(201, "x")}, want: []string{"why: the answer to a creation is not JSON"}},
		"no id":         {answers: []*answer{re(201, `{"id":7}`)}, want: []string{"why: the answer to a creation has no text at /id: say -id-pointer"}},
		"no object":     {answers: []*answer{re(201, `[7]`)}, want: []string{"why: the answer to a creation has no text at /id: say -id-pointer"}},
		"id at a place": {template: func(tp *Template) { cart(tp); tp.Checkout.ID = "/a~1b/c~0d" }, answers: []*answer{re(201, `{"a/b":{"c~d":"y"}}`), no}, sent: lines("POST /s/ update-session AUTH BODY", "POST /s/y update AUTH BODY"), want: []string{"why: the API answers 422 to it: say -update-body"}},
	}
	plays(t, "update", commerce(ACP, operation))
	plays(t, "update", commerce(UCP, map[string]scene{"UCP": {
		answers: []*answer{created, a, a, re(409, "no")}, want: []string{"blamed: 409 idempotency_conflict", "steady: update"},
		sent: lines("POST /s/ update-session AUTH BODY", "PUT /s/x update AUTH BODY", "PUT /s/x update AUTH BODY", `PUT /s/x update AUTH {"a":1,"b":[1,2],"c":null,"samekey_check":1}`),
	}}))
	plays(t, "cancel", commerce(UCP, map[string]scene{"cancel": {
		answers: []*answer{created, a, a, re(409, "no")}, want: []string{"blamed: 409 idempotency_conflict", "steady: cancel"},
		sent: lines("POST /s/ cancel-session AUTH BODY", "POST /s/x/cancel cancel AUTH {}", "POST /s/x/cancel cancel AUTH {}", `POST /s/x/cancel cancel AUTH {"samekey_check":1}`),
	}}))

	other := func(n int) *answer { return re(200, strings.Repeat("x", n)) }
	session := func(id string) *answer { return re(201, `{"id":"`+id+`"}`) }
	pay := `AUTH {"payment_data":{"token":"tok_check","provider":"stripe"}}`
	pathsSent := lines("POST /s/ path-update-session-1 AUTH BODY", "POST /s/ path-update-session-2 AUTH BODY", "POST /s/1 path AUTH BODY", "POST /s/2 path AUTH BODY", "POST /s/1/complete path "+pay, "POST /s/2/complete path "+pay,
		"POST /s/ path-cancel-session-1 AUTH BODY", "POST /s/ path-cancel-session-2 AUTH BODY", "POST /s/3/cancel path AUTH {}", "POST /s/4/cancel path AUTH {}", "POST /s/ path AUTH BODY")
	all := steady("update", "complete", "cancel")
	told := []string{"steady: cancel", "steady: complete", "steady: update"}
	plays(t, "path", commerce(ACP, map[string]scene{
		"apart":    {before: all, answers: []*answer{session("1"), session("2"), other(1), other(2), other(3), other(4), session("3"), session("4"), other(5), other(6), other(7)}, sent: pathsSent, want: told},
		"replayed": {before: all, answers: []*answer{session("1"), session("2"), other(1), other(1), other(3), other(4), session("3"), session("4"), other(5), other(6), other(7)}, want: append([]string{"path-replayed acp: it got the answer of another path, 200 with 1 bytes"}, told...)},
		"refused":  {before: all, answers: []*answer{session("1"), session("2"), no, other(2), other(3), other(4), session("3"), session("4"), other(5), other(6), other(7)}, want: append([]string{"path-refused acp: 422"}, told...)},
		"not all": {
			before: steady("update", "cancel"), answers: []*answer{session("1"), session("2"), other(1), other(2), session("3"), session("4"), other(5), other(6), other(7)},
			sent: slices.Concat(pathsSent[:4], pathsSent[6:]), want: []string{"why: see the check complete", "steady: cancel", "steady: update"},
		},
		"lost":         {before: all, sent: pathsSent[:1], want: append([]string{cut}, told...)},
		"lost on":      {before: all, sent: pathsSent[:3], answers: []*answer{session("1"), session("2")}, want: append([]string{cut}, told...)},
		"lost at last": {before: all, answers: []*answer{session("1"), session("2"), other(1), other(2), other(3), other(4), session("3"), session("4"), other(5), other(6)}, want: append([]string{cut}, told...)},
	}))
	plays(t, "concurrent-complete", commerce(ACP, map[string]scene{
		"waits":   {before: steady("complete"), answers: []*answer{session("1"), a, a, a}, sent: lines("POST /s/ concurrent-complete-session AUTH BODY", "POST /s/1/complete complete-concurrent "+pay, of("POST /s/1/complete complete-concurrent "+pay), of("POST /s/1/complete complete-concurrent "+pay)), want: []string{nobody, "steady: complete"}},
		"twice":   {before: steady("complete"), answers: []*answer{session("1"), a, other(1), a}, want: []string{"concurrent-complete-twice acp: 2 different answers to 2 of the same request", nobody, "steady: complete"}},
		"lost":    {before: steady("complete"), sent: lines("POST /s/ concurrent-complete-session AUTH BODY"), want: []string{cut, "steady: complete"}},
		"lost on": {before: steady("complete"), answers: []*answer{session("1")}, want: []string{cut, "steady: complete"}},
		"unclear": {before: steady("update"), want: []string{"why: see the check complete", "steady: update"}},
	}))
	required := "blamed: 400 idempotency_key_required"
	plays(t, "missing", commerce(ACP, map[string]scene{
		"refused": {
			answers: []*answer{re(400, ""), session("1"), re(400, ""), re(400, ""), re(400, "")}, want: slices.Repeat([]string{required}, 4),
			sent: lines("POST /s/ AUTH BODY", "POST /s/ missing-session AUTH BODY", "POST /s/1 AUTH BODY", "POST /s/1/complete "+pay, "POST /s/1/cancel AUTH {}"),
		},
		"cancels":    {answers: []*answer{re(400, ""), session("1"), re(400, ""), re(400, ""), a}, want: []string{"missing-ran acp: 200 with 4 bytes; if the API's documentation says that keys are optional, say -key-optional", required, required, required}},
		"lost":       {sent: lines("POST /s/ AUTH BODY"), want: []string{cut}},
		"no session": {sent: lines("POST /s/ AUTH BODY", "POST /s/ missing-session AUTH BODY"), answers: []*answer{re(400, "")}, want: []string{required, cut}},
		"lost on":    {sent: lines("POST /s/ AUTH BODY", "POST /s/ missing-session AUTH BODY", "POST /s/1 AUTH BODY"), answers: []*answer{re(400, ""), session("1")}, want: []string{required, cut}},
	}))
}

// commerce are scenes of a contract, at the cart where they have no other template.
func commerce(contract string, scenes map[string]scene) map[string]scene {
	for name, s := range scenes {
		if s.contract = contract; s.template == nil {
			s.template = cart
		}
		scenes[name] = s
	}
	return scenes
}

func TestSpellingScenes(t *testing.T) {
	t.Parallel()
	first, ran := re(201, "first answer"), re(201, "another")
	f := re(201, "new answer")
	same := "it got the first answer, 201 with "
	plays(t, "equality", commerce(ACP, map[string]scene{
		"right": {answers: []*answer{f, f, no, no, no}, sent: lines(
			`POST /s/ equality AUTH {"a":1,"b":[1,2],"c":null,"samekey_check":{"absent":null,"list":[1,2]}}`,
			`POST /s/ equality AUTH { "samekey_check" : { "list" : [1.0, 2.0], "absent" : null }, "c" : null, "b" : [1.0, 2.0], "a" : 1.0 }`,
			`POST /s/ equality AUTH {"a":1,"b":[1,2],"samekey_check":{"absent":null,"list":[1,2]}}`,
			`POST /s/ first AUTH {"a":1,"b":[1,2],"c":null,"samekey_check":null}`,
			`POST /s/ equality AUTH {"a":1,"b":[2,1],"c":null,"samekey_check":{"absent":null,"list":[1,2]}}`,
		)},
		"respelled refused": {answers: []*answer{f, no, no, no, no}, want: []string{"respelled-refused acp: 422"}},
		"respelled ran":     {answers: []*answer{f, ran, no, no, no}, want: []string{"respelled-ran acp: 201 with 7 bytes"}},
		"null is absent":    {answers: []*answer{f, f, f, no, no}, want: []string{"null-absent acp: " + same + "10 bytes"}},
		"absent is null":    {answers: []*answer{f, f, no, first, no}, want: []string{"null-absent acp: " + same + "12 bytes"}},
		"no order":          {answers: []*answer{f, f, no, no, f}, want: []string{"array-order acp: " + same + "10 bytes"}},
		"runs":              {answers: []*answer{f, f, no, no, ran}, want: []string{"mismatch-ran acp: a body that differs only by array-order got an answer of its own, 201 with 7 bytes"}},
		"strict": {
			answers: []*answer{re(400, ""), first, no, no, no}, want: []string{"note: The API answers 400 to a member that it doesn't know: the body's own numbers, nulls and arrays were examined."},
			sent: lines(
				`POST /s/ equality AUTH {"a":1,"b":[1,2],"c":null,"samekey_check":{"absent":null,"list":[1,2]}}`, `POST /s/ first AUTH { "c" : null, "b" : [1.0, 2.0], "a" : 1.0 }`,
				`POST /s/ first AUTH {"a":1,"b":[1,2]}`, `POST /s/ first AUTH {"a":1,"b":[1,2],"c":null,"samekey_check":null}`, `POST /s/ first AUTH {"a":1,"b":[2,1],"c":null}`,
			),
		},
		"strict, without": {
			template: func(tp *Template) { cart(tp); tp.Body = []byte(`{"a":"1"}`) }, answers: []*answer{re(400, ""), first, no},
			want: []string{
				"note: The API answers 400 to a member that it doesn't know: the body's own numbers, nulls and arrays were examined.", "note: The body has no integer: whether 1.0 is 1 was not examined.",
				"note: The body doesn't have a null: null-absent was not examined.", "note: The body doesn't have an array of two different elements: array-order was not examined.",
			},
		},
		"infirm":     {before: unfirm, want: []string{infirm}},
		"lost":       {want: []string{cut}},
		"lost on":    {answers: []*answer{f}, want: []string{cut}},
		"lost later": {answers: []*answer{f, f}, want: []string{cut}},
	}))
	plays(t, "equality", commerce(UCP, map[string]scene{
		"right":   {answers: []*answer{no}, sent: lines(`POST /s/ first AUTH { "c" : null, "b" : [1.0, 2.0], "a" : 1.0 }`)},
		"ignored": {answers: []*answer{first}, want: []string{"bytes-ignored ucp: other bytes got the first answer, 201 with 12 bytes"}},
		"ran":     {answers: []*answer{ran}, want: []string{"mismatch-ran ucp: other bytes got an answer of their own, 201 with 7 bytes"}},
		"infirm":  {before: unfirm, want: []string{infirm}},
		"lost":    {want: []string{cut}},
	}))
	id := func(status int, id string) *answer { return re(status, "", "Request-Id", id) }
	plays(t, "request-id", commerce(ACP, map[string]scene{
		"right":         {answers: []*answer{id(200, "p-n-request"), id(400, "p-n-request")}, sent: lines("POST /s/ first AUTH Request-Id:request BODY", "POST /s/ AUTH Request-Id:request BODY")},
		"of a refusal":  {answers: []*answer{id(200, "p-n-request"), id(400, "x")}, want: []string{`request-id-unechoed acp: a 400 has Request-Id "x"`}},
		"of an answer":  {answers: []*answer{re(200, ""), id(400, "p-n-request")}, want: []string{`request-id-unechoed acp: a 200 has Request-Id ""`}},
		"lost":          {want: []string{cut}},
		"lost the last": {answers: []*answer{id(200, "p-n-request")}, want: []string{cut}},
	}))
	plays(t, "malformed", commerce(ACP, map[string]scene{
		"takes all":  {answers: []*answer{ran, ran}, want: []string{"key-long acp: 201 with 7 bytes"}},
		"takes none": {answers: []*answer{no, no}, want: []string{"key-short acp: 422 with 2 bytes"}},
		"lost":       {want: []string{cut}},
	}))
	blames := func(body, code string) func(*examination) {
		return func(e *examination) { e.blamed = []*answer{{status: 400, body: []byte(body), code: code}} }
	}
	wrong := func(contract, n string) []string {
		return []string{"error-body " + contract + ": a 400 has " + n + " bytes without them", "blamed: 400 "}
	}
	plays(t, "errors", commerce(ACP, map[string]scene{
		"right":       {before: blames(`{"type":"invalid_request","code":"c","message":"m"}`, "c"), want: []string{"blamed: 400 c"}},
		"unavailable": {before: blames(`{"type":"service_unavailable","code":"c","message":"m"}`, ""), want: []string{"blamed: 400 "}},
		"processing":  {before: blames(`{"type":"processing_error","code":"c","message":"m"}`, ""), want: []string{"blamed: 400 "}},
		"code":        {before: blames(`{"type":"invalid_request","code":"d","message":"m"}`, "c"), want: []string{`error-code acp: a 400 has the code "d", want "c"`, "blamed: 400 c"}},
		"no code":     {before: blames(`{"type":"invalid_request","message":"m"}`, ""), want: wrong("acp", "40")},
		"no message":  {before: blames(`{"type":"invalid_request","code":"c"}`, ""), want: wrong("acp", "37")},
		"no type":     {before: blames(`{"type":"t","code":"c","message":"m"}`, ""), want: wrong("acp", "37")},
		"nothing":     {before: blames(``, ""), want: wrong("acp", "0")},
		"none":        {want: []string{"why: no error about a key was seen"}},
		"busy":        {before: func(e *examination) { e.busy = true }, want: []string{"busy"}},
	}))
	plays(t, "errors", commerce(UCP, map[string]scene{
		"UCP":        {before: blames(`{"code":"d","content":"m"}`, "c"), want: []string{"blamed: 400 c"}},
		"no content": {before: blames(`{"type":"invalid_request","code":"c","message":"m"}`, ""), want: wrong("ucp", "51")},
		"no code":    {before: blames(`{"content":"m"}`, ""), want: wrong("ucp", "15")},
	}))
}

// Bodies are changed as they have to be, and where they can be.
func TestBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{}`: `{"samekey_check":1}`, ` { } `: `{"samekey_check":1}`, "{\"a\":1 }\n": `{"a":1,"samekey_check":1}`} {
		if got := withMember([]byte(body), "1"); string(got) != want {
			t.Errorf("%q with a member is %s", body, got)
		}
	}
	for body, want := range map[string]string{
		`{"a":"<","b":{"c":true},"d":[[],{}]}`:  `{ "d" : [[], {  }], "b" : { "c" : true }, "a" : "\u003c" }`,
		`[1.5,1e3,2E3,12345678901234567890,-1]`: `[1.5, 1e3, 2E3, 12345678901234567890.0, -1.0]`, `null`: `null`,
	} {
		if got := string(respelled([]byte(body))); got != want {
			t.Errorf("%s is respelled as %s", body, got)
		}
		var a, b any
		if json.Unmarshal([]byte(body), &a) != nil || json.Unmarshal(respelled([]byte(body)), &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("%s is another value", body)
		}
	}
	for body, want := range map[string][2]string{
		`{"b":null,"a":null}`: {`{"b":null}`, ""}, `{"a":{"b":[{"c":null}]}}`: {`{"a":{"b":[{}]}}`, ""}, `{"a":[null,{"b":null}]}`: {`{"a":[null,{}]}`, `{"a":[{"b":null},null]}`},
		`{"a":1}`: {"", ""}, `{"a":[]}`: {"", ""}, `{"b":[1,2],"a":[1]}`: {"", `{"a":[1],"b":[2,1]}`}, `{"a":[1,1],"b":[[1,2,3]]}`: {"", `{"a":[1,1],"b":[[3,2,1]]}`}, `{"b":[1,2],"a":[3,4]}`: {"", `{"a":[4,3],"b":[1,2]}`},
	} {
		if got := [2]string{string(changed([]byte(body), dropNull)), string(changed([]byte(body), turn))}; got != want {
			t.Errorf("%s: changed to %q, want %q", body, got, want)
		}
	}
	for body, want := range map[string]bool{`{}`: true, `{"a":1}`: true, `null`: false, `[]`: false, `{`: false, ``: false} {
		if isObject([]byte(body)) != want {
			t.Errorf("%q is an object: %t", body, !want)
		}
	}
}

// A commerce template is completed as its protocol has it.
func TestCheckouts(t *testing.T) {
	t.Parallel()
	for contract, payment := range map[string]string{
		ACP: `{"payment_data":{"token":"tok_check","provider":"stripe"}}`, UCP: `{"payment":{"instruments":[{"id":"instrument_1","credential":{"token":"tok_check"}}]}}`,
	} {
		tp := Template{Body: []byte(`{"a":1}`)}
		err := tp.commerce(contract)
		want := Template{Body: tp.Body, OtherBody: []byte(`{"a":1,"samekey_check":1}`), Checkout: Checkout{
			ID: "/id", Update: Operation{"{id}", tp.Body}, Complete: Operation{"{id}/complete", []byte(payment)}, Cancel: Operation{"{id}/cancel", []byte("{}")},
		}}
		if diff := cmp.Diff(want, tp); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		own := Template{Body: []byte(`{}`), OtherBody: []byte("1"), Checkout: Checkout{
			ID: "/a", Update: Operation{"/u/{id}", []byte("{}")}, Complete: Operation{"/c/{id}", []byte("{}")}, Cancel: Operation{"/x/{id}", []byte(`{"b":1}`)},
		}}
		tp = own
		if err := tp.commerce(contract); err != nil || !cmp.Equal(own, tp) {
			t.Errorf("%v: %+v", err, tp)
		}
	}
}
