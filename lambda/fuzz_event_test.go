package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

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
		h := goldenOf(t, file).counted(idem.New(&idem.MemoryStore{}, callertest.Anybody), &runs)
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
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
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
		h, runs, _ := charging(idem.New(&idem.MemoryStore{}, callertest.Anybody))
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
