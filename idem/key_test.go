package idem

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/base/defaults"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	k255 := strings.Repeat("k", 255)
	tests := map[string]struct {
		values []string
		strict bool
		want   string
		err    error
	}{
		"01 no header":                    {nil, false, "", ErrKeyMissing},
		"02 empty":                        {[]string{""}, false, "", ErrKeyInvalid},
		"02 only spaces":                  {[]string{" \t "}, false, "", ErrKeyInvalid},
		"02 quoted empty":                 {[]string{`""`}, false, "", ErrKeyInvalid},
		"03 255 characters":               {[]string{k255}, false, k255, nil},
		"03 255 characters in quotes":     {[]string{`"` + k255 + `"`}, false, k255, nil},
		"03 256 characters":               {[]string{k255 + "k"}, false, "", ErrKeyInvalid},
		"03 10 KB":                        {[]string{strings.Repeat("k", 10<<10)}, false, "", ErrKeyInvalid},
		"04 NUL":                          {[]string{"a\x00b"}, false, "", ErrKeyInvalid},
		"04 CR LF":                        {[]string{"a\r\nb"}, false, "", ErrKeyInvalid},
		"04 DEL":                          {[]string{"a\x7fb"}, false, "", ErrKeyInvalid},
		"04 control character in quotes":  {[]string{"\"a\x01b\""}, false, "", ErrKeyInvalid},
		"05 umlaut":                       {[]string{"schlüssel"}, false, "", ErrKeyInvalid},
		"05 invalid UTF-8":                {[]string{"a\xffb"}, false, "", ErrKeyInvalid},
		"05 right-to-left mark":           {[]string{"a\u202eb"}, false, "", ErrKeyInvalid},
		"05 umlaut in quotes":             {[]string{`"schlüssel"`}, false, "", ErrKeyInvalid},
		"06 two headers":                  {[]string{"a", "b"}, false, "", ErrKeyInvalid},
		"06 the same twice":               {[]string{"a", "a"}, false, "", ErrKeyInvalid},
		"06 joined by a comma":            {[]string{"a,b"}, false, "", ErrKeyInvalid},
		"06 quoted, joined by a comma":    {[]string{`"a", "b"`}, false, "", ErrKeyInvalid},
		"07 bare":                         {[]string{"8e03978e-40d5"}, false, "8e03978e-40d5", nil},
		"07 quoted":                       {[]string{`"8e03978e-40d5"`}, false, "8e03978e-40d5", nil},
		"07 spaces around":                {[]string{"  abc "}, false, "abc", nil},
		"quoted comma":                    {[]string{`"a,b"`}, false, "a,b", nil},
		"escaped quote":                   {[]string{`"a\"b"`}, false, `a"b`, nil},
		"the same bare":                   {[]string{`a"b`}, false, `a"b`, nil},
		"parameters are ignored":          {[]string{`"abc";v=1`}, false, "abc", nil},
		"unfinished quotes":               {[]string{`"abc`}, false, "", ErrKeyInvalid},
		"space inside":                    {[]string{"a b"}, false, "", ErrKeyInvalid},
		"space inside quotes":             {[]string{`"a b"`}, false, "a b", nil},
		"strict: space inside quotes":     {[]string{`" a b "`}, true, " a b ", nil},
		"tab inside quotes":               {[]string{"\"a\tb\""}, false, "", ErrKeyInvalid},
		"strict: quoted":                  {[]string{`"abc"`}, true, "abc", nil},
		"strict: bare":                    {[]string{"abc"}, true, "", ErrKeyInvalid},
		"19 looks like a key of another":  {[]string{"v1#other-tenant#abc"}, false, "v1#other-tenant#abc", nil},
		"falsy values are keys: 0":        {[]string{"0"}, false, "0", nil},
		"falsy values are keys: false":    {[]string{"false"}, false, "false", nil},
		"a token that starts with a star": {[]string{"*abc"}, false, "*abc", nil},
	}
	for name, tt := range tests {
		t.Run("BadInput "+name, func(t *testing.T) {
			t.Parallel()
			got, _, err := parseKey(tt.values, 1, defaults.MaxKey, tt.strict)
			if err == nil && got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
	for value, why := range map[string]string{"": "empty", `""`: "empty", `"abc`: "RFC 9651", "abc": "quoted"} {
		if _, _, err := parseKey([]string{value}, 1, 100, true); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want an error with %q", value, err, why)
		}
	}
	if _, _, err := parseKey([]string{"short"}, 20, 100, false); !errors.Is(err, ErrKeyInvalid) {
		t.Error("R7: a key under the minimum was taken")
	}
}

func TestHeaderValuesInAnyCase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY", "iDeMpOtEnCy-kEy"} {
		if got := headerValues(http.Header{name: {"abc"}}, KeyHeader); len(got) != 1 || got[0] != "abc" {
			t.Errorf("%s: found %q", name, got)
		}
	}
	if got := headerValues(http.Header{"Idempotency-\u212aey": {"abc"}}, KeyHeader); got != nil {
		t.Errorf("a header with a Kelvin sign: found %q", got)
	}
	two := http.Header{"Idempotency-Key": {"a"}, "idempotency-key": {"b"}}
	if got := headerValues(two, KeyHeader); len(got) != 2 {
		t.Errorf("two spellings of one header: found %q, want both", got)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"", "abc", `"abc"`, `"a\"b"`, `"abc";v=1`, `"`, "a,b", "a\x00", "\xff", `"a", "b"`, strings.Repeat("k", 256)} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, value string, strict bool) {
		key, _, err := parseKey([]string{value}, 1, defaults.MaxKey, strict)
		if err != nil {
			if !errors.Is(err, ErrKeyInvalid) {
				t.Errorf("%q: %v", value, err)
			}
			return
		}
		if len(key) < 1 || len(key) > defaults.MaxKey || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%q was taken as %q", value, key)
		}
		// Its quoted form is the same key.
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, _, err := parseKey([]string{quoted}, 1, defaults.MaxKey, true); err != nil || again != key {
			t.Errorf("%q: quoted as %q it is %q, %v", key, quoted, again, err)
		}
	})
}
