package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

const paypal = "PayPal-Request-Id"

func underPayPals(o *idem.Options) { o.KeyHeader = paypal }

// withHeaders sends a POST with headers, names and values in turn, and returns the
// answer and how often the handler has run in all.
func withHeaders(t *testing.T, e *idem.Engine, runs *int, body string, headers ...string) idem.Result {
	t.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = append(h[headers[i]], headers[i+1])
	}
	res, err := e.Serve(t.Context(), idem.Request{Method: "POST", Path: "/orders", Scope: "one", Header: h, Body: []byte(body)},
		func(context.Context) (idem.Response, error) {
			*runs++
			return idem.Response{Status: 201}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A contract may have a name of its own for the header: PayPal-Request-Id,
// Cko-Idempotency-Key, X-Idempotency-Key.
func TestKeyUnderAnotherName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{paypal, "cko-idempotency-key", "X-Idempotency-Key"} {
		runs := 0
		e := idem.New(new(idem.MemoryStore), func(o *idem.Options) { o.KeyHeader = name })
		for i, header := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			res := withHeaders(t, e, &runs, "{}", header, `"k"`, idem.KeyHeader, "of a browser, another each time")
			if runs != 1 || res.Status != 201 || res.Replayed != (i > 0) || res.Header.Get(name) != `"k"` || res.Header.Get(idem.KeyHeader) != "" {
				t.Errorf("%s: %d runs, %d, %v", header, runs, res.Status, res.Header)
			}
		}
		if res := withHeaders(t, e, &runs, "{}", name, "k"); runs != 1 || !res.Replayed || res.Header.Get(name) != "k" {
			t.Errorf("%s without quotes: %d runs, %v; want the replay", name, runs, res.Header)
		}
		canonical := http.CanonicalHeaderKey(name)
		for why, headers := range map[string][]string{
			"missing": {idem.KeyHeader, "k"}, "invalid": {name, "k", name, "k2"}, "invalid, joined": {name, "k, k2"},
		} {
			res := withHeaders(t, e, &runs, "{}", headers...)
			code, _, _ := strings.Cut(why, ",")
			if body := string(res.Body); runs != 1 || res.Status != 400 || !strings.Contains(body, `"title":"`+canonical+" is "+code) ||
				strings.Contains(strings.ReplaceAll(body, canonical, ""), idem.KeyHeader) || !strings.Contains(body, "#idempotency_key_"+code) {
				t.Errorf("%s, %s: %d %s", name, why, res.Status, body)
			}
		}
		if res := withHeaders(t, e, &runs, `{"a":1}`, name, "k"); res.Status != 422 || !strings.Contains(string(res.Body), canonical+" is already used") {
			t.Errorf("%s with another body: %d %s", name, res.Status, res.Body)
		}
	}
	// Errors in Stripe's shape name it too.
	runs := 0
	e := idem.New(new(idem.MemoryStore), idem.Stripe, underPayPals)
	if res := withHeaders(t, e, &runs, "{}"); res.Status != 400 || !strings.Contains(string(res.Body), paypalCanonical+" is missing") {
		t.Errorf("%d %s", res.Status, res.Body)
	}
}

// paypalCanonical is the name as Go's http.Header spells it.
const paypalCanonical = "Paypal-Request-Id"

// What isn't protected says so, whatever the header's name is.
func TestIgnoredKeyUnderAnotherName(t *testing.T) {
	t.Parallel()
	off := idem.New(nil, underPayPals, func(o *idem.Options) { o.Mode = idem.ModeOff })
	for name, want := range map[string]string{paypal: "ignored", idem.KeyHeader: ""} {
		runs := 0
		if res := withHeaders(t, off, &runs, "{}", name, "k"); res.Header.Get("Idempotency-Status") != want || runs != 1 {
			t.Errorf("%s: %v, %d runs; want %q", name, res.Header, runs, want)
		}
	}
	optional := idem.New(new(idem.MemoryStore), underPayPals, func(o *idem.Options) { o.Key = idem.KeyOptional })
	if optional.Acts("POST", http.Header{idem.KeyHeader: {"k"}}) || !optional.Acts("POST", http.Header{"paypal-request-id": {"k"}}) {
		t.Error("acts on the other header")
	}
}

// A page of another origin may read the header under its name.
func TestKeyHeaderIsExposed(t *testing.T) {
	t.Parallel()
	e := idem.New(new(idem.MemoryStore), underPayPals, func(o *idem.Options) { o.CORS = idem.CORS{Origins: []string{"*"}} })
	runs := 0
	if res := withHeaders(t, e, &runs, "{}"); !strings.Contains(res.Header.Get("Access-Control-Expose-Headers"), paypalCanonical) {
		t.Errorf("pages may not read it: %v", res.Header)
	}
}

// Which key counts: docs/use/http.md has the same table.
func TestWhichKeyCounts(t *testing.T) {
	t.Parallel()
	const form = "application/x-www-form-urlencoded"
	for name, tc := range map[string]struct {
		body   string
		header []string
		want   string // the key that counts; else the status
	}{
		"both":                            {"token=of-the-form", []string{idem.KeyHeader, "of-the-browser"}, "of-the-form"},
		"the form alone":                  {"token=of-the-form", nil, "of-the-form"},
		"the header alone":                {"amount=5", []string{idem.KeyHeader, "of-the-browser"}, "of-the-browser"},
		"none":                            {"amount=5", nil, "400"},
		"the form's is invalid":           {"token=a&token=b", []string{idem.KeyHeader, "of-the-browser"}, "400"},
		"the header's is invalid":         {"token=of-the-form", []string{idem.KeyHeader, "a b"}, "of-the-form"},
		"two headers beside the form":     {"token=of-the-form", []string{idem.KeyHeader, "a", idem.KeyHeader, "b"}, "of-the-form"},
		"the header's alone, and invalid": {"amount=5", []string{idem.KeyHeader, "a b"}, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, got := 0, ""
			e := idem.New(new(idem.MemoryStore), func(o *idem.Options) {
				o.KeyFrom = idem.FormKey("token")
				o.Fingerprint.Func = func(r *idem.Request) ([]byte, error) { got = r.Key; return r.Body, nil }
				o.Fingerprint.FuncName = "body"
			})
			res := withHeaders(t, e, &runs, tc.body, append(tc.header, "Content-Type", form)...)
			if res.Status != 201 {
				got = "400"
			}
			if got != tc.want {
				t.Errorf("%d with the key %q, want %q", res.Status, got, tc.want)
			}
		})
	}
	// A contract may say that both agree: KeyFrom sees the header, and refuses.
	agreed := idem.New(new(idem.MemoryStore), func(o *idem.Options) {
		o.KeyFrom = func(r *idem.Request) (string, error) {
			key, err := idem.FormKey("token")(r)
			if h := r.Header.Get(idem.KeyHeader); err == nil && h != "" && h != key {
				err = fmt.Errorf("%w: header and form disagree", idem.ErrKeyInvalid)
			}
			return key, err
		}
	})
	for header, want := range map[string]int{"another": 400, "of-the-form": 201, "": 201} {
		runs, more := 0, []string{"Content-Type", form}
		if header != "" {
			more = append(more, idem.KeyHeader, header)
		}
		if res := withHeaders(t, agreed, &runs, "token=of-the-form", more...); res.Status != want || (runs == 0) != (header == "another") && !res.Replayed {
			t.Errorf("beside the header %q: %d, %d runs", header, res.Status, runs)
		}
	}
	// Twice the same form, from a browser that adds a key to each submit.
	runs := 0
	e := idem.New(new(idem.MemoryStore), func(o *idem.Options) { o.KeyFrom = idem.FormKey("token") })
	for i, key := range []string{"first-submit", "second-submit"} {
		if res := withHeaders(t, e, &runs, "token=t", "Content-Type", form, idem.KeyHeader, key); runs != 1 || res.Replayed != (i > 0) {
			t.Errorf("submit %d: %d runs, %+v", i+1, runs, res)
		}
	}
}

// What Options.KeyFrom finds goes through the same rules as a header's key, and without a
// find the header counts.
func TestKeyFrom(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, tc := range map[string]struct {
		key    string
		err    error
		status int
		stored int
	}{
		"a key":            {"a!b", nil, 201, 1},
		"no find":          {"", idem.ErrKeyMissing, 201, 1},
		"an empty key":     {"", nil, 400, 0},
		"a space in it":    {"a b", nil, 400, 0},
		"too long":         {strings.Repeat("k", 256), nil, 400, 0},
		"it can't be said": {"a", down, 500, 0},
	} {
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.KeyFrom = func(*idem.Request) (string, error) { return tc.key, tc.err } })
		r := request
		r.Key, r.Header = "", http.Header{idem.KeyHeader: {"k"}}
		res, err := e.Serve(t.Context(), r, answers(201))
		if err != nil || res.Status != tc.status || len(mem.Records()) != tc.stored {
			t.Errorf("%s: %d %s, %v, %d records", name, res.Status, res.Body, err, len(mem.Records()))
		}
	}
}

// Who sends a key that breaks a rule learns the rules of this engine.
func TestAnInvalidKeyHearsTheRules(t *testing.T) {
	t.Parallel()
	const quotes = "in double quotes"
	for want, opt := range map[string]func(*idem.Options){
		"of 1 to 255 visible ASCII characters, for instance a UUID.": func(*idem.Options) {},
		"of 2 to 255 ":  func(o *idem.Options) { o.MinKey = 2 },
		"of 22 to 255 ": idem.OneScope,
		quotes:          idem.IETF,
	} {
		r := request
		r.Key, r.Header = "", http.Header{idem.KeyHeader: {"schlüssel"}}
		res, err := idem.New(&idem.MemoryStore{}, opt).Serve(t.Context(), r, never(t))
		if err != nil || res.Status != 400 || !strings.Contains(string(res.Body), want) || want != quotes && strings.Contains(string(res.Body), quotes) {
			t.Errorf("%d %s, %v; want %q", res.Status, res.Body, err, want)
		}
	}
}

// A request without a header may have its key elsewhere.
func TestActsOnKeysElsewhere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt  func(*idem.Options)
		want bool
	}{
		"optional":            {func(o *idem.Options) { o.Key = idem.KeyOptional }, false},
		"optional, in a form": {func(o *idem.Options) { o.Key, o.KeyFrom = idem.KeyOptional, idem.FormKey("k") }, true},
		"required":            {func(*idem.Options) {}, true},
	} {
		if got := idem.New(&idem.MemoryStore{}, callertest.Anybody, tc.opt).Acts("POST", nil); got != tc.want {
			t.Errorf("%s: acts %t, want %t", name, got, tc.want)
		}
	}
}

// A key is made for a request without one, but neither for a part of an operation nor for a
// source that repeats its requests: each repetition would be another operation.
func TestKeyIsMade(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyGenerate })
	keyless := idem.Request{Method: "POST", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}
	res, err := e.Serve(t.Context(), keyless, func(ctx context.Context) (idem.Response, error) {
		res, err := e.Serve(ctx, keyless, answers(201))
		if err != nil || !res.Passed || len(mem.Records()) != 1 {
			t.Errorf("inside: %+v, %v, %d records", res, err, len(mem.Records()))
		}
		return res.Response, err
	})
	if err != nil || res.Status != 201 || len(res.Header.Get(idem.KeyHeader)) != 26 || len(mem.Records()) != 1 {
		t.Errorf("%+v, %v, %d records", res, err, len(mem.Records()))
	}
	repeated := keyless
	repeated.Redelivered = true
	if res, err := e.Serve(t.Context(), repeated, never(t)); err != nil || res.Status != 400 {
		t.Errorf("repeated: %+v, %v", res, err)
	}
}

// Whoever finds the key elsewhere finds no other keys than the header may have.
func TestKeyFoundElsewhereIsChecked(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{"a-b": 201, "a b": 400, "a\nb": 400} {
		r := request
		r.Key = key
		if res, err := idem.New(&idem.MemoryStore{}, callertest.Anybody).Serve(t.Context(), r, answers(201)); err != nil || res.Status != want {
			t.Errorf("%q: %+v, %v", key, res, err)
		}
	}
}

func TestEchoIsTheKeyAlone(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"\tabc":  "abc",
		`"abc"`:  `"abc"`,
		`"a\"b"`: `"a\"b"`,
		`"abc";a="` + strings.Repeat("x", 900) + `"`: `"abc"`,
	} {
		r := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Header: http.Header{idem.KeyHeader: {sent}}}
		res, err := idem.New(&idem.MemoryStore{}, callertest.Anybody).Serve(t.Context(), r, answers(201))
		if got := res.Header.Get(idem.KeyHeader); err != nil || got != want {
			t.Errorf("%.20s: echoed %.30s, %v; want %s", sent, got, err, want)
		}
	}
}

// The key in a hidden field of a form.
func TestFormKey(t *testing.T) {
	t.Parallel()
	multi := "--x\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\nabc\r\n--x\r\n" +
		"Content-Disposition: form-data; name=\"file\"; filename=\"token\"\r\n\r\nzzz\r\n--x--\r\n"
	for name, tc := range map[string]struct {
		kind, body, want string
		err              error
	}{
		"urlencoded":     {"application/x-www-form-urlencoded", "a=1&token=abc", "abc", nil},
		"with a charset": {"application/x-www-form-urlencoded; charset=utf-8", "token=a%2Fb", "a/b", nil},
		"multipart":      {"multipart/form-data; boundary=x", multi, "abc", nil},
		"missing":        {"application/x-www-form-urlencoded", "a=1", "", idem.ErrKeyMissing},
		"twice":          {"application/x-www-form-urlencoded", "token=1&token=2", "", idem.ErrKeyInvalid},
		"a bad type":     {"application/x-www-form-urlencoded; a", "token=abc", "abc", nil},
		"two types":      {"application/x-www-form-urlencoded; a=1; a=2", "token=abc", "abc", nil},
		"no boundary":    {"multipart/form-data; boundary", multi, "", idem.ErrRequest},
		"a file":         {"multipart/form-data; boundary=x", strings.Replace(multi, `name="file"`, `name="token"`, 1), "abc", nil},
		"no form":        {"application/json", `{"token":"abc"}`, "", idem.ErrKeyMissing},
		"no type":        {"", "token=abc", "", idem.ErrKeyMissing},
		"broken":         {"application/x-www-form-urlencoded", "token=%zz", "", idem.ErrRequest},
		"cut off":        {"multipart/form-data; boundary=x", multi[:60], "", idem.ErrRequest},
	} {
		got, err := idem.FormKey("token")(&idem.Request{Header: http.Header{"Content-Type": {tc.kind}}, Body: []byte(tc.body)})
		if got != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := idem.FormKey("token")(&idem.Request{Body: []byte("token=abc")}); !errors.Is(err, idem.ErrKeyMissing) {
		t.Errorf("no Content-Type: %v", err)
	}
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.KeyFrom = idem.FormKey("token") })
	var runs atomic.Int64
	req := keyed("")
	req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	req.Body = []byte("amount=5&token=abc")
	for i := range 2 {
		res, err := e.Serve(t.Context(), req, slow(0, &runs))
		if err != nil || res.Status != 201 || res.Replayed != (i > 0) {
			t.Errorf("%+v, %v", res, err)
		}
	}
	req.Body = []byte("amount=5")
	if res, _ := e.Serve(t.Context(), req, slow(0, &runs)); res.Status != 400 || runs.Load() != 1 {
		t.Errorf("without a token: %d, %d runs", res.Status, runs.Load())
	}
}

// For any form, FormKey doesn't panic. It returns an error that is answered with
// 400, or the field's value as net/http reads the form, to which the engine
// applies the rules for keys. More seeds are in testdata/fuzz/FuzzFormKey.
func FuzzFormKey(f *testing.F) {
	f.Add("application/x-www-form-urlencoded", []byte("token=abc"))
	f.Add("multipart/form-data; boundary=x", []byte("--x\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\nabc\r\n--x--\r\n"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		req := &idem.Request{Method: "POST", Path: "/", Scope: "s", Header: http.Header{"Content-Type": {contentType}}, Body: body}
		key, err := idem.FormKey("token")(req)
		switch {
		case err == nil:
			if want, ok := netHTTPReads(contentType, string(body)); ok && key != want && len(key) <= defaults.MaxKey {
				t.Errorf("%q: net/http reads %q", key, want)
			}
		case !errors.Is(err, idem.ErrKeyMissing) && !errors.Is(err, idem.ErrKeyInvalid) && !errors.Is(err, idem.ErrRequest):
			t.Errorf("an error of no kind: %v", err)
		case key != "":
			t.Errorf("a key, %q, with the error %v", key, err)
		}

		res, err := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.KeyFrom = idem.FormKey("token") }).
			Serve(t.Context(), *req, charged)
		if err != nil || res.Status != 201 && res.Status != 400 {
			t.Fatalf("%d %s, %v", res.Status, res.Body, err)
		}
		usable := key != "" && len(key) <= defaults.MaxKey && !strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })
		if usable != (res.Status == 201) {
			t.Errorf("key %q: %d %s", key, res.Status, res.Body)
		}
	})
}

// netHTTPReads returns the field's only value, as net/http reads the form.
func netHTTPReads(contentType, body string) (string, bool) {
	r, err := http.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if err != nil {
		return "", false
	}
	r.Header.Set("Content-Type", contentType)
	if err := r.ParseMultipartForm(1 << 20); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return "", false
	}
	values := r.PostForm["token"]
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// A multipart form is submitted twice: each submission has its own boundary.
func TestMultipartDoubleSubmit(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.KeyFrom = idem.FormKey("token") })
	n := 0
	h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n++; w.WriteHeader(201) }))
	for range 2 {
		var b bytes.Buffer
		m := multipart.NewWriter(&b) // a fresh random boundary, as browsers make
		_ = m.WriteField("token", "abc")
		_ = m.WriteField("amount", "5")
		_ = m.Close()
		r := httptest.NewRequest("POST", "/pay", &b)
		r.Header.Set("Content-Type", m.FormDataContentType())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 201 {
			t.Errorf("the same form, submitted twice: %d %s", w.Code, w.Body)
		}
	}
}

// The error text of FormKey contains nothing of the body.
func TestFormErrorHoldsBody(t *testing.T) {
	t.Parallel()
	var seen error
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
		o.KeyFrom = idem.FormKey("token")
		o.Hooks.Refused = func(_ context.Context, ev idem.Event) { seen = ev.Err }
	})
	h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	for ct, body := range map[string]string{
		"multipart/form-data; boundary=x":   "card=4242424242424242\r\ncvc=123\r\n--x--\r\n--x\r\nfoo\r\n",
		"multipart/form-data; boundary=y":   "--y\r\ncard 4242424242424242\r\n\r\n--y--",
		"multipart/form-data; boundary=z":   "--z\r\n\r\na\r\n--z card=4242424242424242\r\n\r\n--z--",
		"application/x-www-form-urlencoded": "card=%zz4242424242424242&a=b",
	} {
		seen = nil
		r := httptest.NewRequest("POST", "/pay", strings.NewReader(body))
		r.Header.Set("Content-Type", ct)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if seen != nil && strings.Contains(seen.Error(), "4242424242424242") {
			t.Errorf("hook's error holds the card number: %v", seen)
		}
	}
}

// Two multipart bodies with the same boundary differ in a field's value.
func TestBoundaryCollision(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	seen := []string{}
	h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			t.Error(err)
		}
		seen = append(seen, r.FormValue("memo"))
		_, _ = w.Write([]byte(r.FormValue("memo")))
	}))
	send := func(boundary, memo string) (int, string) {
		b := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"memo\"\r\n\r\n" + memo + "\r\n--" + boundary + "--\r\n"
		r := httptest.NewRequest("POST", "/", strings.NewReader(b))
		r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	send("1", "a--1b")
	code, body := send("1", "a--b")
	if code != 422 {
		t.Errorf("another value, same boundary: %d %q", code, body)
	}
}

// A key that names another caller or joins with its scope to another key is a key like any
// other, and a body too large or too deep to be read counts by its bytes.
func TestBadInput(t *testing.T) {
	t.Parallel()
	canonical := func(o *idem.Options) { o.Fingerprint.CanonicalJSON = true }
	for name, tt := range map[string]struct {
		change func(*idem.Request)
		status int
	}{
		"19 key that names another tenant":        {func(r *idem.Request) { r.Key = "v1#s#k" }, 201},
		"19 key and scope that join to the first": {func(r *idem.Request) { r.Scope, r.Key = "", "sk" }, 201},
		"20 body of 6 MB":                         {func(r *idem.Request) { r.Body = bytes.Repeat([]byte("["), 6<<20) }, 422},
		"20 body 100 deep": {func(r *idem.Request) {
			r.Body = []byte(strings.Repeat(`{"__proto__":`, 100) + "1" + strings.Repeat("}", 100))
		}, 422},
	} {
		e := idem.New(&idem.MemoryStore{}, canonical)
		for i, want := range []int{201, tt.status, 201} {
			r, fn := request, answers(201)
			if i == 1 {
				tt.change(&r)
			}
			r.Key, r.Header = "", http.Header{idem.KeyHeader: {r.Key}, "Content-Type": {"application/json"}}
			if res, err := e.Serve(t.Context(), r, fn); err != nil || res.Status != want || res.Replayed != (i == 2) {
				t.Errorf("%s, request %d: got %d %s, replayed %t, %v; want %d", name, i, res.Status, res.Body, res.Replayed, err, want)
			}
		}
	}
}
