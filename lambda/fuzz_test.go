package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// Whatever a payload holds: no panic, and either an answer that the source can
// read or ErrEvent.

func FuzzHTTPAPI(f *testing.F)     { fuzzInvoke(f, "httpapi", httpAPI) }
func FuzzREST(f *testing.F)        { fuzzInvoke(f, "rest", rest) }
func FuzzFunctionURL(f *testing.F) { fuzzInvoke(f, "functionurl", functionURL) }
func FuzzALB(f *testing.F)         { fuzzInvoke(f, "alb", albMulti) }

func fuzzInvoke(f *testing.F, kind string, s source) {
	f.Helper()
	for _, file := range golden(f) {
		if strings.HasPrefix(file, kind+"_") {
			f.Add(load(f, file))
		}
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		h, runs := counted(created)
		wrapped := s.wrap(anEngine(), h)
		ctx, cancel := context.WithTimeout(t.Context(), ample)
		defer cancel()
		out, err := wrapped.Invoke(ctx, payload)
		switch {
		case errors.Is(err, lambda.ErrEvent):
			ran(t, runs, 0)
			return
		case err != nil:
			t.Fatalf("Invoke: %v", err)
		}
		a := s.result(t, out)
		if a.status == 201 && a.value("Idempotency-Key") != "" { // keyed: the second one is a replay
			if out, err = wrapped.Invoke(ctx, payload); err != nil {
				t.Fatalf("second Invoke: %v", err)
			}
			s.result(t, out).accepted(t, 201, string(a.body), true)
			ran(t, runs, 1)
		}
	})
}

// What goes into Reply comes out of Response: status and body as they were,
// headers as far as the form has room for them.
func FuzzReply(f *testing.F) {
	f.Add(201, []byte(`{"a":1}`), "application/json", "one", "two", "a=1; Path=/")
	f.Add(200, []byte("\x89PNG\r\n\x1a\n\x00\xff"), "image/png", "", "a, b", "a=1, b=2")
	f.Add(599, []byte(nil), "é", "\"", "\\", "")
	f.Fuzz(func(t *testing.T, status int, body []byte, contentType, first, second, cookie string) {
		if status == 0 {
			status = 200 // what the zero status means
		}
		want := idem.Response{Status: status, Body: body, Header: http.Header{
			"Content-Type": {contentType}, "X-List": {first, second}, "Set-Cookie": {cookie},
		}}
		list := want
		list.Header = want.Header.Clone()
		list.Header["X-List"] = []string{first + ", " + second}

		check := func(name string, want, got idem.Response, err error) {
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%s: err %v (-want +got):\n%s", name, err, diff)
			}
		}
		got, err := lambda.HTTPAPI.Response(lambda.HTTPAPI.Reply(want))
		check("HTTPAPI", list, got, err)
		got, err = lambda.FunctionURL.Response(lambda.FunctionURL.Reply(want))
		check("FunctionURL", list, got, err)
		got, err = lambda.REST.Response(lambda.REST.Reply(want))
		check("REST", want, got, err)
		got, err = lambda.ALB.Response(lambda.ALB.Reply(want))
		check("ALB", want, got, err)
		single := lambda.ALB.Reply(want)
		single.MultiValueHeaders = nil
		got, err = lambda.ALB.Response(single)
		check("ALB, single values", list, got, err)
	})
}

// One request is one request, whatever it holds, through whichever source.
func FuzzSameRequest(f *testing.F) {
	f.Add("rides", "now", "a", "1", "2", []byte(goldenBody), "text")
	f.Add("zoë@example.com", "a b+c;d,e:f", "tag[]", "b c+d&e=f", "é", []byte("\x00\xff"), "quoted \"comma\"")
	f.Add("", "", "", "", "", []byte(nil), "")
	f.Fuzz(func(t *testing.T, first, second, name, value, other string, body []byte, header string) {
		for _, s := range []string{first, second, name, value, other, header} {
			if !utf8.ValidString(s) {
				t.Skip("JSON can't hold it")
			}
		}
		if strings.ContainsAny(first+second, "/%") {
			t.Skip("HTTP APIs hide it")
		}
		c := newCall("k")
		c.path = "/" + url.PathEscape(first) + "/" + url.PathEscape(second)
		c.query = url.Values{name: {value, other}}.Encode()
		c.header["X-Any"] = []string{header}
		c.body = body
		h, runs := counted(created)
		e := anEngine(func(o *idem.Options) { o.Fingerprint.Headers = []string{"x-any"} })
		for i, s := range []source{httpAPI, rest, functionURL, albMulti} {
			s.send(t, s.wrap(e, h), c).accepted(t, 201, "made: "+string(body), i > 0)
		}
		ran(t, runs, 1)
	})
}

// Whatever a payload holds: no panic, and either ErrEvent or records that are
// done once.
func FuzzBatches(f *testing.F) {
	for i, file := range batchFiles {
		f.Add(byte(i), loadBatch(f, file))
		f.Add(byte(i), loadBatch(f, batchFiles[(i+2)%len(batchFiles)]))
	}
	f.Fuzz(func(t *testing.T, source byte, payload []byte) {
		file := batchFiles[int(source)%len(batchFiles)]
		var runs atomic.Int64
		h := goldenOf(t, file).counted(anEngine(), &runs)
		ctx, cancel := context.WithTimeout(t.Context(), ample)
		defer cancel()
		out, err := h.Invoke(ctx, payload)
		if errors.Is(err, lambda.ErrEvent) {
			if runs.Load() != 0 || out != nil {
				t.Errorf("%d runs, answer %s", runs.Load(), out)
			}
			return
		}
		first := runs.Load()
		again, err2 := h.Invoke(ctx, payload)
		if string(again) != string(out) || (err == nil) != (err2 == nil) {
			t.Errorf("first %s, %v, then %s, %v", out, err, again, err2)
		}
		if all := runs.Load(); all != first { // what wasn't done has failed before the handler was run
			t.Errorf("%d runs, then %d more", first, all-first)
		}
		if err == nil && !json.Valid(out) {
			t.Errorf("the answer is %s", out)
		}
	})
}

// A request that is run again is the same request, whatever it holds.
func FuzzEventMadeAgain(f *testing.F) {
	f.Add("/rides", "a=1&b=2", "", "text", false, "alice", "POST /rides")
	f.Add("/prod/a%2Fb/%2541/zo\u00eb/%zz", "tag=a&tag=b%20c&=&x&y=%zz&&z==", "a, b", "aGVsbG8=", true, "", "ANY /{proxy+}")
	f.Add("", "", "\"", "\x00\x01", false, "a|b%", "$default")
	f.Add("//", "+=%2B&%3D=%26", "é", "@@@", true, "\u2028", "")
	f.Fuzz(func(t *testing.T, path, query, header, body string, isBase64 bool, subject, route string) {
		if route == "" {
			t.Skip("API Gateway names one")
		}
		ev := map[string]any{
			"httpMethod": "POST", "path": path, "rawPath": path, "resource": route + "/", "routeKey": route, "rawQueryString": query,
			"headers": map[string]string{"x-tag": header, "content-type": header, "authorization": header},
			"body":    body, "isBase64Encoded": isBase64,
			"queryStringParameters": last(rawParameters(query)), "multiValueQueryStringParameters": rawParameters(query),
			"pathParameters": map[string]string{route: path}, "stageVariables": map[string]string{subject: header},
			"requestContext": map[string]any{
				"stage": route, "http": map[string]any{"method": "POST", "path": path, "sourceIp": header},
				"elb": map[string]any{"targetGroupArn": "arn:" + subject}, "identity": map[string]any{"sourceIp": header, "userArn": subject},
				"authorizer": map[string]any{
					"jwt": map[string]any{"claims": map[string]string{"sub": subject}}, "iam": map[string]string{"userArn": subject},
					"claims": map[string]string{"sub": subject, "iss": header}, "principalId": subject, "n": 1.5, "null": nil,
				},
			},
		}
		payload, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		fuzzAgain(t, lambda.HTTPAPI, payload)
		fuzzAgain(t, lambda.REST, payload)
		fuzzAgain(t, lambda.FunctionURL, payload)
		fuzzAgain(t, lambda.ALB, payload)
	})
}

func fuzzAgain[Ev, Re any](t *testing.T, a lambda.Adapter[Ev, Re], payload []byte) {
	t.Helper()
	var ev Ev
	if err := json.Unmarshal(payload, &ev); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Request(t.Context(), ev); err != nil {
		return // a body that isn't base64
	}
	_, _, before, after := again(t, a, payload)
	// A query is compared as the fingerprint has it: a=&b and a&b= are the same.
	if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(idem.Request{}, "Query")); diff != "" {
		t.Errorf("the request of the event made again (-want +got):\n%s", diff)
	}
	e := anEngine()
	for i, req := range []idem.Request{before, after} {
		req.Key, req.Scope = "k", "s"
		res, err := e.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{}, nil })
		if res.Replayed != (i == 1) || err != nil {
			t.Errorf("request %d: replayed %v, %v\n%+v", i+1, res.Replayed, err, req)
		}
	}
}

// Any payload is either refused or has one result.
func FuzzDirect(f *testing.F) {
	f.Add([]byte(`{"id":"o-1","amount":20}`))
	f.Add([]byte(`{"ID":"o-1","id":"o-2"}`))
	f.Add([]byte(`{"id":"ö"}`))
	f.Add([]byte(`null`))
	f.Add([]byte("{\"id\":\"o-1\",\"tenant\":\"\\ud800\xff\"}"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		h, runs, _ := charging(anEngine())
		ctx, cancel := context.WithTimeout(t.Context(), ample)
		defer cancel()
		out, err := h.Invoke(ctx, payload)
		for range 2 {
			again, err2 := h.Invoke(ctx, payload)
			if string(again) != string(out) || (err == nil) != (err2 == nil) {
				t.Errorf("first %s, %v, then %s, %v", out, err, again, err2)
			}
		}
		if want := 1; err == nil && *runs != want || err != nil && *runs != 0 {
			t.Errorf("%d runs, error %v", *runs, err)
		}
		if err == nil {
			var re receipt
			if err := json.Unmarshal(out, &re); err != nil {
				t.Errorf("the result is %s: %v", out, err)
			}
		}
	})
}
