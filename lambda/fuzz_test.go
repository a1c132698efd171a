package lambda_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
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
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
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
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Fingerprint.Headers = []string{"x-any"} })
		for i, s := range []source{httpAPI, rest, functionURL, albMulti} {
			s.send(t, s.wrap(e, h), c).accepted(t, 201, "made: "+string(body), i > 0)
		}
		ran(t, runs, 1)
	})
}
