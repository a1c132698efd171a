package idem

import (
	"strings"
	"testing"
)

// A form is compared by its parts only if it is one as a whole; otherwise by its bytes.
func TestFormParts(t *testing.T) {
	t.Parallel()
	const kind = "multipart/form-data; boundary=x"
	const whole = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n"
	for name, tt := range map[string]struct {
		kind, body string
		form       bool
	}{
		"a form":                   {kind, whole, true},
		"a type that is none":      {"multipart/form-data; boundary=x; a", whole, false},
		"no boundary":              {"multipart/form-data", whole, false},
		"another boundary":         {"multipart/form-data; boundary=y", whole, false},
		"cut off in a part":        {kind, whole[:52], false},
		"cut off in its header":    {kind, whole[:20], false},
		"no end":                   {kind, strings.TrimSuffix(whole, "--\r\n"), false},
		"a line that is no header": {kind, "--x\r\nno header\r\n\r\n1\r\n--x--\r\n", false},
	} {
		if form, ok := formParts(tt.kind, []byte(tt.body)); ok != tt.form || (len(form) > 0) != tt.form {
			t.Errorf("%s: %q, %t", name, form, ok)
		}
	}
}
