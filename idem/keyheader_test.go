package idem_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
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

// The lists of headers follow the name.
func TestKeyHeaderIsOnEveryList(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]func(*idem.Options){
		"fingerprinted":  func(o *idem.Options) { o.Fingerprint.Headers = []string{"paypal-request-id"} },
		"stored":         func(o *idem.Options) { o.StoreHeaders = []string{paypal} },
		"stored input":   func(o *idem.Options) { o.InputHeaders = []string{paypal} },
		"the default's":  func(o *idem.Options) { o.StoreHeaders = []string{idem.KeyHeader} },
		"a credential":   func(o *idem.Options) { o.KeyHeader = "authorization" },
		"the contract's": func(o *idem.Options) { o.KeyHeader = "Idempotency-Status" },
		"no name":        func(o *idem.Options) { o.KeyHeader = "PayPal Request" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			idem.New(new(idem.MemoryStore), underPayPals, opt)
		})
	}
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
