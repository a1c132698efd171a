package idem_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

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
