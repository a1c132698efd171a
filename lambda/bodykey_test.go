package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

func TestJSONKey(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		key        lambda.BodyKey
		body, want string // sha256: its beginning
	}{
		"a member":               {lambda.JSONKey("/id"), `{"id":"o-1"}`, "o-1"},
		"further in":             {lambda.JSONKey("/order/id"), ` {"order": {"id": "o-1"}} `, "o-1"},
		"of a list":              {lambda.JSONKey("/orders/1/id"), `{"orders":[{"id":"a"},{"id":"b"}]}`, "b"},
		"the body is a list":     {lambda.JSONKey("/0"), ` ["a"]`, "a"},
		"an integer":             {lambda.JSONKey("/id"), `{"id":7}`, "7"},
		"a text of digits":       {lambda.JSONKey("/id"), `{"id":"7"}`, "7"},
		"zero":                   {lambda.JSONKey("/id"), `{"id":0}`, "0"},
		"below zero":             {lambda.JSONKey("/id"), `{"id":-7}`, "-7"},
		"beyond float64":         {lambda.JSONKey("/id"), `{"id":12345678901234567891}`, "12345678901234567891"},
		"escapes in the text":    {lambda.JSONKey("/id"), `{"id":"\u0061\/b"}`, "a/b"},
		"escapes in the pointer": {lambda.JSONKey("/a~1b~0c/~01"), `{"a/b~c":{"~1":"x"}}`, "x"},
		"a name without text":    {lambda.JSONKey("/"), `{"":"x"}`, "x"},
		"other case":             {lambda.JSONKey("/ID"), `{"id":"a","ID":"b"}`, "b"},
		"not ASCII":              {lambda.JSONKey("/id"), `{"id":"Büro 7"}`, "sha256:"},
		"spaces":                 {lambda.JSONKey("/id"), `{"id":" "}`, "sha256:"},
		"too long":               {lambda.JSONKey("/id"), `{"id":"` + strings.Repeat("k", 256) + `"}`, "sha256:"},
		"as long as may be":      {lambda.JSONKey("/id"), `{"id":"` + strings.Repeat("k", 255) + `"}`, strings.Repeat("k", 255)},
		"looks like a digest":    {lambda.JSONKey("/id"), `{"id":"sha256:x"}`, "sha256:"},
		"the first and the last": {lambda.JSONKey("/id"), `{"id":"!~"}`, "!~"},
		"beyond the last":        {lambda.JSONKey("/id"), `{"id":"a\u007f"}`, "sha256:"},
		"one letter of others":   {lambda.JSONKey("/id"), `{"id":"Büro7"}`, "sha256:"},
		"two":                    {lambda.JSONKey("/shop", "/id"), `{"shop":"s","id":7}`, "sha256:"},
	} {
		got, err := tc.key.Key([]byte(tc.body))
		if tc.want == "sha256:" && len(got) == 50 && strings.HasPrefix(got, tc.want) {
			got = tc.want
		}
		if got != tc.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tc.want)
		}
	}
	// What is not the same must not be one key, however it is put together.
	seen := make(map[string]string)
	for _, body := range []string{
		`{"a":"x","b":"yz"}`, `{"a":"xy","b":"z"}`, `{"a":"yz","b":"x"}`, `{"a":"x|","b":"z"}`, `{"a":"x","b":"|z"}`, `{"a":"xyz","b":" "}`,
	} {
		key, err := lambda.JSONKey("/a", "/b").Key([]byte(body))
		if other := seen[key]; other != "" || err != nil {
			t.Errorf("%s has the key of %s: %v", body, other, err)
		}
		seen[key] = body
	}
}

// Nothing that could be the key of many bodies is one: the error names the path, and
// nothing of the value.
func TestJSONKeyFindsNone(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for name, body := range map[string]string{
		"missing":               `{"order":{"number":"` + secret + `"}}`,
		"missing on the way":    `{"id":"` + secret + `"}`,
		"null":                  `{"order":{"id":null}}`,
		"null on the way":       `{"order":null}`,
		"empty":                 `{"order":{"id":""}}`,
		"true":                  `{"order":{"id":true}}`,
		"an object":             `{"order":{"id":{"a":"` + secret + `"}}}`,
		"a list":                `{"order":{"id":["` + secret + `"]}}`,
		"a text on the way":     `{"order":"` + secret + `"}`,
		"a list on the way":     `{"order":[{"id":"` + secret + `"}]}`,
		"a fraction":            `{"order":{"id":1.0}}`,
		"an exponent":           `{"order":{"id":1e3}}`,
		"minus zero":            `{"order":{"id":-0}}`,
		"twice":                 `{"order":{"id":"` + secret + `","id":"o-2"}}`,
		"twice, escaped":        `{"order":{"id":"` + secret + `","\u0069d":"o-2"}}`,
		"twice on the way":      `{"order":{"id":"` + secret + `"},"order":{"id":"o-2"}}`,
		"other case":            `{"order":{"ID":"` + secret + `"}}`,
		"a lone surrogate":      `{"order":{"id":"` + secret + `\ud800"}}`,
		"not UTF-8":             "{\"order\":{\"id\":\"" + secret + "\xff\"}}",
		"cut off":               `{"order":{"id":"` + secret + `"}`,
		"something behind":      `{"order":{"id":"` + secret + `"}}{}`,
		"no JSON":               secret,
		"nothing":               ``,
		"a text":                `"` + secret + `"`,
		"null itself":           `null`,
		"a place that isn't it": `{"order/id":"` + secret + `"}`,
	} {
		key, err := lambda.JSONKey("/order/id").Key([]byte(body))
		if key != "" || err == nil || !strings.Contains(err.Error(), "/order/id") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %q, %v, want an error that names /order/id", name, key, err)
		}
	}
	for name, pointer := range map[string]string{"-": "/a/-", "beyond the end": "/a/1", "before": "/a/-1", "zeros": "/a/00", "a name": "/a/id"} {
		if key, err := lambda.JSONKey(pointer).Key([]byte(`{"a":["x"]}`)); err == nil {
			t.Errorf("%s: got %q, want an error", name, key)
		}
	}
}

// A batch reads the body that the producer sent.
func TestBodyKeyOfBatches(t *testing.T) {
	t.Parallel()
	const body = `{"order":{"id":"o-1"}}`
	key := lambda.JSONKey("/order/id")
	kinesis, ev, sns := position("1"), events.EventBridgeEvent{ID: "e", Detail: []byte(body)}, notification("n")
	kinesis.Kinesis.Data, sns.SNS.Message = []byte(body), body
	unread, failing := lambda.SQS, errors.New("it can't be read")
	unread.Request = func(context.Context, events.SQSMessage) (idem.Request, error) {
		return idem.Request{Body: []byte(body)}, failing
	}
	unread = unread.WithBodyKey(key)
	if k, err := unread.Key(message("1", body)); k != "" || !errors.Is(err, failing) {
		t.Errorf("of what can't be read: got %q, %v", k, err)
	}
	if _, err := unread.Request(t.Context(), message("1", body)); !errors.Is(err, failing) {
		t.Errorf("what can't be read is a request: %v", err)
	}
	for name, got := range map[string]func() (string, error){
		"SQS": func() (string, error) { return lambda.SQS.WithBodyKey(key).Key(message("1", body)) },
		"SQS behind a topic": func() (string, error) {
			return lambda.SQS.WithBodyKey(key).Key(message("1", published(t, "1", body, nil)))
		},
		"SQS behind a bus": func() (string, error) {
			return lambda.SQS.WithBodyKey(key).Key(message("1", put(t, "1", json.RawMessage(body))))
		},
		"SNS":                  func() (string, error) { return lambda.SNS.WithBodyKey(key).Key(sns) },
		"EventBridge's detail": func() (string, error) { return lambda.EventBridge.WithBodyKey(key).Key(ev) },
		"Kinesis":              func() (string, error) { return lambda.Kinesis.WithBodyKey(key).Key(kinesis) },
		"S3":                   func() (string, error) { return lambda.S3.WithBodyKey(lambda.JSONKey("/Object")).Key(upload("o-1")) },
		"DynamoDB": func() (string, error) {
			r := change("1")
			r.Change.Keys = map[string]events.DynamoDBAttributeValue{"id": events.NewStringAttribute("o-1")}
			return lambda.DynamoDBStream.WithBodyKey(lambda.JSONKey("/Keys/id/S")).Key(r)
		},
	} {
		if k, err := got(); k != "o-1" || err != nil {
			t.Errorf("%s: got %q, %v", name, k, err)
		}
	}
}

// On every door the same key, the same refusal for a body that has none, and for one
// order that is spelt in two ways.
func TestBodyKeyOnEveryDoor(t *testing.T) {
	t.Parallel()
	key := lambda.JSONKey("/order/id")
	none := func(o *idem.Options) { o.Key = idem.KeyOptional } // it isn't for what can't be read
	doors := map[string]func(runs *int) func(body string) error{
		"batch": func(runs *int) func(string) error {
			h := lambda.WrapEach(anEngine(none), quiet(lambda.SQS.WithBodyKey(key)), func(context.Context, events.SQSMessage) error {
				*runs++
				return nil
			})
			id := 0
			return func(body string) error {
				id++
				_, err := h.Handle(t.Context(), batch(message(fmt.Sprint(id), body)))
				return err
			}
		},
		"Direct": func(runs *int) func(string) error {
			type nothing struct{} // the key is read from the payload, whatever the type keeps
			h := lambda.Wrap(anEngine(none), lambda.Direct[nothing, int](key), func(context.Context, nothing) (int, error) {
				*runs++
				return *runs, nil
			})
			return func(body string) error {
				_, err := h.Invoke(t.Context(), []byte(body))
				return err
			}
		},
		"HTTP": func(runs *int) func(string) error {
			e := anEngine(none, idem.OneScope, func(o *idem.Options) { o.KeyFrom = key.From })
			h := e.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *runs++ }))
			return func(body string) error {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
				if w.Code != http.StatusOK {
					return errors.New(w.Body.String())
				}
				return nil
			}
		},
	}
	for name, open := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			send := open(&runs)
			for _, step := range []struct {
				body    string
				refused bool
				runs    int
			}{
				{`{"order":{"id":7}}`, false, 1},
				{`{"order":{"id":7}}`, false, 1},
				{`{"order":{"id":"7"}}`, true, 1},
				{`{"order":{"id":8}}`, false, 2},
				{`{"order":{}}`, true, 2},
				{`{"order":{"id":null}}`, true, 2},
			} {
				if err := send(step.body); (err != nil) != step.refused || runs != step.runs {
					t.Errorf("%s: %v, %d runs, want %+v", step.body, err, runs, step)
				}
			}
		})
	}
}

// What is absent differs from what is there, wherever it is.
func TestComparingTellsWhatIsAbsent(t *testing.T) {
	t.Parallel()
	key := lambda.JSONKey("/id").Comparing("/a", "/b")
	seen := make(map[string]string)
	for _, body := range []string{`{}`, `{"a":1}`, `{"b":1}`, `{"a":1,"b":1}`, `{"a":"absent"}`, `{"a":11}`} {
		same, err := key.Same([]byte(body))
		if other := seen[string(same)]; other != "" || err != nil {
			t.Errorf("%s is the same as %s: %v", body, other, err)
		}
		seen[string(same)] = body
	}
}

// A body with the time of sending is the same work each time, if the program says what
// of it decides; other work under its key is still refused.
func TestComparing(t *testing.T) {
	t.Parallel()
	w := &worker{}
	key := lambda.JSONKey("/order/id").Comparing("/order", "/note")
	h := lambda.WrapEach(anEngine(), quiet(lambda.SQS.WithBodyKey(key)), w.message)
	for i, step := range []struct {
		body string
		err  error
	}{
		{`{"sent":1,"order":{"id":"o-1","amount":20}}`, nil},
		{`{"sent":2,"order":{"amount": 20, "id":"o-1"}}`, nil},
		{`{"sent":3,"order":{"id":"o-1","amount":30}}`, idem.ErrMismatch},
		{`{"sent":4,"order":{"id":"o-1","amount":20},"note":"x"}`, idem.ErrMismatch},
		{`{"sent":5,"order":{"id":"o-1","amount":20},"note":null}`, idem.ErrMismatch},
		{`{"sent":6,"order":{"id":"o-1","amount":20},"note":{"a":1,"a":2}}`, idem.ErrIncomparable},
		{`{"sent":7,"order":{"id":"o-2","amount":20},"note":{"a":1,"a":2}}`, idem.ErrRequest},
	} {
		if _, err := h.Handle(t.Context(), batch(message(fmt.Sprint(i), step.body))); !errors.Is(err, step.err) {
			t.Errorf("%s: got %v, want %v", step.body, err, step.err)
		}
	}
	w.ran(t, "0")
}

func rpc(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func TestJSONRPCKey(t *testing.T) {
	t.Parallel()
	distinct(t, lambda.JSONRPCKey(), rpc(`1`, "charge", `{}`), rpc(`"1"`, "charge", `{}`), rpc(`"number 1"`, "charge", `{}`),
		rpc(`1`, "refund", `{}`), rpc(`2`, "charge", `{}`), rpc(`"8f14e45f"`, "charge", `{}`))
	distinct(t, lambda.JSONRPCKey("/params/session"), rpc(`1`, "charge", `{"session":"a"}`), rpc(`1`, "charge", `{"session":"b"}`))
	equal(t, lambda.JSONRPCKey(), rpc(`1`, "charge", `{}`), `{"id":1,"params":[2],"method":"charge","jsonrpc":"2.0"}`)
	refuses(t, lambda.JSONRPCKey("/params/session"), map[string]string{
		`{"jsonrpc":"2.0","method":"charge","params":{"session":"a"}}`:           "/id: a notification",
		`{"jsonrpc":"2.0","id":null,"method":"charge","params":{"session":"a"}}`: "/id",
		`{"jsonrpc":"2.0","id":1.5,"method":"charge","params":{"session":"a"}}`:  "/id",
		`{"jsonrpc":"2.0","id":"","method":"charge","params":{"session":"a"}}`:   "/id",
		`{"jsonrpc":"2.0","id":1,"method":"","params":{"session":"a"}}`:          "/method",
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                   "/method",
		`{"id":1,"method":"charge"}`:                                             "/jsonrpc",
		rpc(`1`, "charge", `{}`):                                                 "/params/session",
		`[` + rpc(`1`, "charge", `{}`) + `]`:                                     "JSON-RPC",
		``:                                                                       "JSON-RPC",
	})
}

// The shape of the specification's example, and an agent that tries again.
func TestMCPToolKey(t *testing.T) {
	t.Parallel()
	call := func(id, name, arguments, meta string) string {
		return rpc(id, "tools/call", `{"name":"`+name+`","arguments":`+arguments+`,"_meta":`+meta+`}`)
	}
	first := call(`2`, "refund", `{"order_id":"o-1","amount":20}`, `{"progressToken":"abc"}`)
	again := call(`7`, "refund", `{"amount": 20, "order_id":"o-1"}`, `{"progressToken":"def"}`)
	params := `{"name":"refund","arguments":{"order_id":"o-1","amount":20}}`
	for name, key := range map[string]lambda.BodyKey{"all": lambda.MCPToolKey(), "order": lambda.MCPToolKey("/arguments/order_id")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, key, first, again, params)
			distinct(t, key, first, call(`2`, "refund", `{"order_id":"o-2","amount":20}`, `{}`), call(`2`, "charge", `{"order_id":"o-1","amount":20}`, `{}`))
		})
	}
	distinct(t, lambda.MCPToolKey(), first, call(`2`, "refund", `{"order_id":"o-1","amount":30}`, `{}`))
	equal(t, lambda.MCPToolKey("/_meta/key"), `{"name":"refund","_meta":{"key":"a"}}`, `{"name":"refund","_meta":{"key":"a"},"n":1}`)
	distinct(t, lambda.MCPToolKey("/_meta/idempotency-key"),
		call(`2`, "refund", `{}`, `{"idempotency-key":"a"}`), call(`2`, "refund", `{}`, `{"idempotency-key":"b"}`))

	key := lambda.MCPToolKey("/arguments/order_id")
	same, _ := key.Same([]byte(first))
	for body, want := range map[string]bool{again: true, params: true, call(`2`, "refund", `{"order_id":"o-1","amount":30}`, `{}`): false} {
		if got, err := key.Same([]byte(body)); (string(got) == string(same)) != want || err != nil {
			t.Errorf("%s compares as the same %t, want %t, %v", body, !want, want, err)
		}
	}
	refuses(t, lambda.MCPToolKey(), map[string]string{
		rpc(`1`, "tools/list", `{}`):                          "/method",
		call(`1`, "refund", `{}`, `{}`):                       "/arguments",
		call(`1`, "refund", `null`, `{}`):                     "/arguments",
		call(`1`, "refund", `[1]`, `{}`):                      "/arguments",
		call(`1`, "refund", `{"a":1,"A":2}`, `{}`):            "/arguments",
		call(`1`, "", `{"a":1}`, `{}`):                        "/name",
		rpc(`1`, "tools/call", `{"name":"refund"}`):           "/arguments",
		rpc(`1`, "tools/call", `{"arguments":{"a":1}}`):       "/name",
		rpc(`1`, "tools/call", `[]`):                          "/params",
		`{"method":"tools/call"}`:                             "/params",
		`{}`:                                                  "/name",
		`[]`:                                                  "tool call",
		`{"name":"refund","arguments":{"order_id":"\ud800"}}`: "/arguments",
	})
	refuses(t, key, map[string]string{call(`1`, "refund", `{"order_id":null}`, `{}`): "/arguments/order_id"})
}

func appSync(field, identity, arguments, trace string) string {
	return `{"arguments":` + arguments + `,"identity":` + identity + `,"source":null,"request":{"headers":{"x-amzn-trace-id":"` + trace + `"}},` +
		`"prev":null,"info":{"selectionSetList":["` + trace + `"],"parentTypeName":"Mutation","fieldName":"` + field + `","variables":{}},"stash":{}}`
}

func TestAppSyncKey(t *testing.T) {
	t.Parallel()
	pool := func(sub, iat string) string {
		return `{"sub":"` + sub + `","issuer":"https://cognito-idp.eu-central-1.amazonaws.com/p","username":"u","claims":{"sub":"` + sub + `","iat":` + iat + `}}`
	}
	iam := func(pool, id, arn string) string {
		return `{"accountId":"1","cognitoIdentityPoolId":` + pool + `,"cognitoIdentityId":` + id + `,"userArn":"` + arn + `","username":"x"}`
	}
	const arguments = `{"input":{"key":"k-1","amount":20}}`
	key := lambda.AppSyncKey("/input/key")
	alice := appSync("charge", pool("alice", "1"), arguments, "t1")
	again := appSync("charge", pool("alice", "2"), `{"input":{"amount":20,"key":"k-1"}}`, "t2")
	equal(t, key, alice, again)
	distinct(t, key, alice, appSync("charge", pool("bob", "1"), arguments, "t1"), appSync("refund", pool("alice", "1"), arguments, "t1"),
		appSync("charge", pool("alice", "1"), `{"input":{"key":"k-2","amount":20}}`, "t1"), appSync("charge", `null`, arguments, "t1"),
		appSync("charge", iam(`"p"`, `"i-1"`, "arn:role/r"), arguments, ""), appSync("charge", iam(`"p"`, `"i-2"`, "arn:role/r"), arguments, ""),
		appSync("charge", iam(`null`, `null`, "arn:aws:iam::1:user/a"), arguments, ""), appSync("charge", iam(`""`, `""`, "arn:aws:iam::1:user/b"), arguments, ""))
	same, _ := key.Same([]byte(alice))
	for body, want := range map[string]bool{again: true, appSync("charge", pool("alice", "1"), `{"input":{"key":"k-1","amount":30}}`, "t1"): false} {
		if got, err := key.Same([]byte(body)); (string(got) == string(same)) != want || err != nil {
			t.Errorf("%s compares as the same %t, want %t, %v", body, !want, want, err)
		}
	}
	authorized := func(user string) string {
		return appSync("charge", `{"resolverContext":{"user":"`+user+`","exp":"1"}}`, arguments, "")
	}
	distinct(t, lambda.AppSyncKey("/input/key", "/resolverContext/user"), authorized("a"), authorized("b"))
	refuses(t, key, map[string]string{
		authorized("a"): "/identity",
		appSync("charge", `{"issuer":7.5,"sub":"alice"}`, arguments, ""):                                               "/identity/issuer",
		appSync("charge", pool("", "1"), arguments, ""):                                                                "/identity",
		appSync("charge", `{"sub":7.5}`, arguments, ""):                                                                "/identity/sub",
		appSync("charge", `"alice"`, arguments, ""):                                                                    "/identity",
		appSync("charge", iam(`"p"`, `""`, "arn:aws:sts::1:assumed-role/r/CognitoIdentityCredentials"), arguments, ""): "/identity",
		appSync("charge", `null`, `{"input":{"key":null}}`, ""):                                                        "/arguments/input/key",
		appSync("charge", `null`, `{}`, ""):                                                                            "/arguments/input/key",
		`[` + alice + `]`:                                                                                              "AppSync",
		`{"arguments":{"input":{"key":"k"}}}`:                                                                          "/info/parentTypeName",
		`{"info":{"parentTypeName":"Mutation","fieldName":"f"}}`:                                                       "/arguments",
	})
	refuses(t, lambda.AppSyncKey("/input/key", "/resolverContext/user"), map[string]string{
		alice:                                    "/identity/resolverContext/user",
		appSync("charge", `null`, arguments, ""): "/identity",
		strings.Replace(alice, `"identity"`, `"Identity"`, 1): "/identity",
	})
	equal(t, key, appSync("charge", `null`, arguments, ""), strings.Replace(appSync("charge", `null`, arguments, ""), `"identity":null,`, ``, 1))
}

// A field of an object is resolved for each of them, with the same arguments: the
// refund of one order is no answer for the next.
func TestAppSyncKeyComparesTheParent(t *testing.T) {
	t.Parallel()
	key := lambda.AppSyncKey("/key")
	refund := func(source string) []byte {
		return []byte(`{"arguments":{"key":"k"},"identity":null,"source":` + source + `,"info":{"fieldName":"refund","parentTypeName":"Order"}}`)
	}
	for source, same := range map[string]bool{
		`{"total":20,"id":"o-1"}`: true, `{"id":"o-2","total":20}`: false, `null`: false, `{}`: false,
	} {
		first, err1 := key.Same(refund(`{"id":"o-1","total":20}`))
		second, err2 := key.Same(refund(source))
		if string(first) == string(second) != same || err1 != nil || err2 != nil {
			t.Errorf("the parent %s is the same: %t, want %t; %v, %v", source, !same, same, err1, err2)
		}
	}
	null, err1 := key.Same(refund(`null`))
	absent, err2 := key.Same([]byte(strings.Replace(string(refund(`null`)), `"source":null,`, ``, 1)))
	if string(null) != string(absent) || err1 != nil || err2 != nil {
		t.Errorf("no parent is another than null: %v, %v", err1, err2)
	}
	if _, err := key.Same(refund(`{"id":"o-1","id":"o-2"}`)); err == nil || !strings.Contains(err.Error(), "/source") {
		t.Errorf("a parent that can be read in two ways: got %v", err)
	}
}

func TestStateKey(t *testing.T) {
	t.Parallel()
	state := func(execution, name, item, retry, input string) string {
		m := `,"Map":{"Item":{"Index":` + item + `,"Value":{}}}`
		if item == "" {
			m = ""
		}
		return `{"input":` + input + `,"context":{"Execution":{"Id":"` + execution + `","Input":{"a":1},"RedriveCount":` + retry + `},` +
			`"State":{"Name":"` + name + `","EnteredTime":"2026-11-21T09:30:0` + retry + `Z","RetryCount":` + retry + `}` + m + `}}`
	}
	key := lambda.StateKey("/context")
	first := state("arn:aws:states:eu-central-1:1:execution:m:e", "Charge", "", "0", `{"n":1}`)
	again := state("arn:aws:states:eu-central-1:1:execution:m:e", "Charge", "", "1", `{"n":1}`)
	equal(t, key, first, again)
	distinct(t, key, first, state("e2", "Charge", "", "0", `{}`), state("e2", "Refund", "", "0", `{}`),
		state("e2", "Charge", "0", "0", `{}`), state("e2", "Charge", "1", "0", `{}`))
	distinct(t, lambda.StateKey("/context", "/input/round"), state("e", "s", "", "0", `{"round":1}`), state("e", "s", "", "0", `{"round":2}`))
	same, _ := key.Same([]byte(first))
	for body, want := range map[string]bool{again: true, state("e", "Charge", "", "0", `{"n":2}`): false} {
		if got, err := key.Same([]byte(body)); (string(got) == string(same)) != want || err != nil {
			t.Errorf("%s compares as the same %t, want %t, %v", body, !want, want, err)
		}
	}
	deeper := lambda.StateKey("/meta/context")
	wrap := func(s string) string { return `{"meta":` + s + `,"n":1}` }
	equal(t, deeper, wrap(first), wrap(again))
	a, errA := deeper.Same([]byte(wrap(first)))
	b, errB := deeper.Same([]byte(wrap(again)))
	if string(a) != string(b) || string(a) != `{"meta":{"input":{"n":1}},"n":1}` || errA != nil || errB != nil {
		t.Errorf("got %s, %s, %v, %v", a, b, errA, errB)
	}
	refuses(t, key, map[string]string{
		`{"context":{"Execution":{"Id":"e"}}}`:                                                   "/context/State/Name",
		`{"context":{"State":{"Name":"s"}}}`:                                                     "/context/Execution/Id",
		`{"context":{"Execution":{"Id":""},"State":{"Name":"s"}}}`:                               "/context/Execution/Id",
		`{"context":{"Execution":{"Id":"e"},"State":{"Name":"s"},"Map":{"Item":{"Index":1.5}}}}`: "/context/Map/Item/Index",
		`{"input":{}}`: "/context",
		`null`:         "/context",
	})
	refuses(t, lambda.StateKey("/context", "/input/round"), map[string]string{first: "/input/round"})
}

// What must be the same under one key can be read in one way only.
func TestComparisonRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for body, tt := range map[string]struct {
		key  lambda.BodyKey
		path string
	}{
		`{"a":{"b":1},"a":{"b":2}}`: {lambda.JSONKey("/id").Comparing("/a/b"), `"a" twice`},
		`{"a":{"b":1,"b":2}}`:       {lambda.JSONKey("/id").Comparing("/a"), "/a"},
		`[]`:                        {lambda.AppSyncKey("/key"), "AppSync"},
		`{"arguments":{"a":1,"a":2},"info":{"parentTypeName":"Mutation","fieldName":"f"}}`: {lambda.AppSyncKey("/key"), "/arguments"},
		`{"params":{}}`:                        {lambda.MCPToolKey(), "/name"},
		`{"context":{},"input":1,"input":2}`:   {lambda.StateKey("/context"), "/context"},
		`{"context":{},"input":{"a":1,"a":2}}`: {lambda.StateKey("/context"), "payload"},
	} {
		if got, err := tt.key.Same([]byte(body)); err == nil || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%s: got %q, %v, want an error that names %s", body, got, err, tt.path)
		}
	}
}

func keysOf(t *testing.T, k lambda.BodyKey, bodies []string) []string {
	t.Helper()
	keys := make([]string, len(bodies))
	for i, body := range bodies {
		var err error
		if keys[i], err = k.Key([]byte(body)); err != nil || keys[i] == "" {
			t.Errorf("%s: got %q, %v", body, keys[i], err)
		}
	}
	return keys
}

func equal(t *testing.T, k lambda.BodyKey, bodies ...string) {
	t.Helper()
	keys := keysOf(t, k, bodies)
	for i := range keys {
		if keys[i] != keys[0] {
			t.Errorf("not the same key:\n%s\n%s", bodies[0], bodies[i])
		}
	}
}

func distinct(t *testing.T, k lambda.BodyKey, bodies ...string) {
	t.Helper()
	seen := make(map[string]string)
	for i, key := range keysOf(t, k, bodies) {
		if other := seen[key]; other != "" {
			t.Errorf("the same key:\n%s\n%s", other, bodies[i])
		}
		seen[key] = bodies[i]
	}
}

// refuses checks that the error for each body names the path that has no key.
func refuses(t *testing.T, k lambda.BodyKey, bodies map[string]string) {
	t.Helper()
	for body, path := range bodies {
		if key, err := k.Key([]byte(body)); key != "" || err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %q, %v, want an error that names %s", body, key, err, path)
		}
	}
}

// Whatever a body holds: no panic, and either an error or a key that the engine takes.
func FuzzBodyKey(f *testing.F) {
	for _, body := range []string{
		`{"order":{"id":"o-1"},"a":[1]}`, rpc(`1`, "tools/call", `{"name":"n","arguments":{"order":1}}`), appSync("f", `null`, `{"order":{"id":1}}`, ""),
		`{"context":{"Execution":{"Id":"e"},"State":{"Name":"s"}}}`, `{"order":{"id":"\ud800"}}`, "{\"order\":{\"id\":\"\xff\"}}", `[`, ` [{"order":1}] `,
	} {
		f.Add([]byte(body))
	}
	keys := map[string]lambda.BodyKey{
		"JSON": lambda.JSONKey("/order/id"), "two": lambda.JSONKey("/order/id", "/a/0"), "comparing": lambda.JSONKey("/order/id").Comparing("/order", "/a"),
		"JSON-RPC": lambda.JSONRPCKey(), "MCP": lambda.MCPToolKey(), "MCP, one": lambda.MCPToolKey("/arguments/order"),
		"AppSync": lambda.AppSyncKey("/order/id"), "AppSync, named": lambda.AppSyncKey("/order/id", "/user"), "state": lambda.StateKey("/context"),
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, k := range keys {
			r := idem.Request{Scope: "s", Body: body}
			key, err := k.From(&r)
			if err != nil {
				if !errors.Is(err, idem.ErrKeyInvalid) && !errors.Is(err, idem.ErrRequest) {
					t.Errorf("%s: an error of no kind: %v", name, err)
				}
				continue
			}
			unread := r.Unread
			again := idem.Request{Scope: "s", Body: body}
			if k2, err := k.From(&again); k2 != key || err != nil || (again.Unread == nil) != (unread == nil) || !bytes.Equal(r.Same, again.Same) {
				t.Errorf("%s: first %q, then %q, %v", name, key, k2, err)
			}
			r.Key = key
			_, err = anEngine().Do(t.Context(), r, func(context.Context) (idem.Response, error) { return idem.Response{}, nil })
			if unread == nil && err != nil || unread != nil && !errors.Is(err, idem.ErrRequest) {
				t.Errorf("%s: the engine says %v to %q, which is unread by %v", name, err, key, unread)
			}
		}
	})
}

// A key that may be missing leaves the decision to the header and the mode; a key
// that is there goes before the header, and a mistake is refused.
func TestOptionalBodyKey(t *testing.T) {
	t.Parallel()
	key := lambda.JSONKey("/order/id").Comparing("/order")
	for name, tc := range map[string]struct {
		body, header string
		want         string // the key that counts; else the status
	}{
		"there":               {`{"order":{"id":"o-1"}}`, "", "o-1"},
		"there, and a header": {`{"order":{"id":"o-1"}}`, "h", "o-1"},
		"missing":             {`{"order":{}}`, "", "400"},
		"the header's":        {`{"order":{}}`, "h", "h"},
		"no order at all":     {`{}`, "h", "h"},
		"no body":             {``, "h", "h"},
		"null":                {`{"order":{"id":null}}`, "h", "400"},
		"empty":               {`{"order":{"id":""}}`, "h", "400"},
		"no JSON":             {`order`, "h", "400"},
		"twice":               {`{"order":{"id":"a","id":"b"}}`, "h", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			e := idem.New(new(idem.MemoryStore), func(o *idem.Options) {
				o.KeyFrom = key.FromOptional
				o.Scope = func(_ context.Context, r *idem.Request) (string, error) { got = r.Key; return "one", nil }
			})
			req := idem.Request{Method: "POST", Path: "/orders", Body: []byte(tc.body), Header: http.Header{}}
			if tc.header != "" {
				req.Header.Set(idem.KeyHeader, tc.header)
			}
			res, err := e.Serve(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil })
			if res.Status != 201 {
				got = fmt.Sprint(res.Status)
			}
			if got != tc.want || err != nil {
				t.Errorf("%s: %d with the key %q, %v; want %q", tc.body, res.Status, got, err, tc.want)
			}
		})
	}
}

// A key that a program finds missing is missing, and so is one whose caller isn't named.
func TestOptionalKeyThatIsMissing(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]lambda.BodyKey{
		"a program's own":     {Key: func([]byte) (string, error) { return "", idem.ErrKeyMissing }},
		"without an identity": lambda.AppSyncKey("/key", "/user"),
	} {
		body := `{"arguments":{"key":"k"},"info":{"parentTypeName":"Mutation","fieldName":"f"}}`
		if k, err := key.FromOptional(&idem.Request{Body: []byte(body)}); k != "" || !errors.Is(err, idem.ErrKeyMissing) || errors.Is(err, idem.ErrKeyInvalid) {
			t.Errorf("%s: got %q, %v", name, k, err)
		}
	}
}

// Failures inside of a 200 are stored by no policy of their protocol.
func TestPoliciesOfProtocols(t *testing.T) {
	t.Parallel()
	const jsonRPC, mcp, graphQL = 1, 2, 4 // who stores the answer
	for body, want := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                  jsonRPC + mcp + graphQL,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32603}}`:                      graphQL,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`:                     jsonRPC + mcp + graphQL,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}`:       jsonRPC + graphQL,
		`{"content":[],"isError": true}`:                                        jsonRPC + graphQL,
		`{"content":[],"isError":false}`:                                        jsonRPC + mcp + graphQL,
		`{"data":{"pay":{"id":"p"}}}`:                                           jsonRPC + mcp + graphQL,
		`{"data":null,"errors":[{"message":"down"}]}`:                           jsonRPC + mcp,
		`{"errors":[{"message":"down"}]}`:                                       jsonRPC + mcp,
		`{"data":{"pay":null},"errors":[{"message":"down"}]}`:                   jsonRPC + mcp,
		`{"data":{"pay":{"id":"p"},"mail":null},"errors":[{"message":"down"}]}`: jsonRPC + mcp + graphQL,
		`{"data":{"pay":{"id":"p"}},"errors":[ ]}`:                              jsonRPC + mcp + graphQL,
		`{"data":null,"errorMessage":"down","errorType":"Timeout"}`:             jsonRPC + mcp,
		`"errors"`: jsonRPC + mcp + graphQL,
		``:         jsonRPC + mcp + graphQL,
	} {
		got := 0
		for bit, policy := range map[int]func(idem.Response) bool{jsonRPC: lambda.JSONRPCStored, mcp: lambda.MCPToolStored, graphQL: lambda.GraphQLStored} {
			if policy(idem.Response{Status: 200, Body: []byte(body)}) {
				got += bit
			}
			if policy(idem.Response{Status: 500, Body: []byte(body)}) {
				t.Errorf("%s: a 500 is stored", body)
			}
		}
		if got != want {
			t.Errorf("%s: stored by %03b, want %03b", body, got, want)
		}
	}
}
