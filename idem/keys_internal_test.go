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
		want   string
		err    error
	}{
		"01 no header":                    {nil, "", ErrKeyMissing},
		"02 empty":                        {[]string{""}, "", ErrKeyInvalid},
		"02 only spaces":                  {[]string{" \t "}, "", ErrKeyInvalid},
		"02 quoted empty":                 {[]string{`""`}, "", ErrKeyInvalid},
		"03 255 characters":               {[]string{k255}, k255, nil},
		"03 255 characters in quotes":     {[]string{`"` + k255 + `"`}, k255, nil},
		"03 256 characters":               {[]string{k255 + "k"}, "", ErrKeyInvalid},
		"03 10 KB":                        {[]string{strings.Repeat("k", 10<<10)}, "", ErrKeyInvalid},
		"04 NUL":                          {[]string{"a\x00b"}, "", ErrKeyInvalid},
		"04 CR LF":                        {[]string{"a\r\nb"}, "", ErrKeyInvalid},
		"04 DEL":                          {[]string{"a\x7fb"}, "", ErrKeyInvalid},
		"04 control character in quotes":  {[]string{"\"a\x01b\""}, "", ErrKeyInvalid},
		"05 umlaut":                       {[]string{"schlüssel"}, "", ErrKeyInvalid},
		"05 invalid UTF-8":                {[]string{"a\xffb"}, "", ErrKeyInvalid},
		"05 right-to-left mark":           {[]string{"a\u202eb"}, "", ErrKeyInvalid},
		"05 umlaut in quotes":             {[]string{`"schlüssel"`}, "", ErrKeyInvalid},
		"06 two headers":                  {[]string{"a", "b"}, "", ErrKeyInvalid},
		"06 the same twice":               {[]string{"a", "a"}, "", ErrKeyInvalid},
		"06 joined by a comma":            {[]string{"a,b"}, "", ErrKeyInvalid},
		"06 quoted, joined by a comma":    {[]string{`"a", "b"`}, "", ErrKeyInvalid},
		"07 bare":                         {[]string{"8e03978e-40d5"}, "8e03978e-40d5", nil},
		"07 quoted":                       {[]string{`"8e03978e-40d5"`}, "8e03978e-40d5", nil},
		"07 spaces around":                {[]string{"  abc "}, "abc", nil},
		"quoted comma":                    {[]string{`"a,b"`}, "a,b", nil},
		"escaped quote":                   {[]string{`"a\"b"`}, `a"b`, nil},
		"the same bare":                   {[]string{`a"b`}, `a"b`, nil},
		"parameters are ignored":          {[]string{`"abc";v=1`}, "abc", nil},
		"unfinished quotes":               {[]string{`"abc`}, "", ErrKeyInvalid},
		"space inside":                    {[]string{"a b"}, "", ErrKeyInvalid},
		"space inside quotes":             {[]string{`"a b"`}, "a b", nil},
		"spaces at the ends, in quotes":   {[]string{`" a b "`}, " a b ", nil},
		"tab inside quotes":               {[]string{"\"a\tb\""}, "", ErrKeyInvalid},
		"19 looks like a key of another":  {[]string{"v1#other-tenant#abc"}, "v1#other-tenant#abc", nil},
		"falsy values are keys: 0":        {[]string{"0"}, "0", nil},
		"falsy values are keys: false":    {[]string{"false"}, "false", nil},
		"a token that starts with a star": {[]string{"*abc"}, "*abc", nil},
	}
	for name, tt := range tests {
		t.Run("BadInput "+name, func(t *testing.T) {
			t.Parallel()
			got, _, err := parseKey(tt.values)
			if err == nil && got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
	for value, why := range map[string]string{"": "empty", `""`: "empty", `"abc`: "RFC 9651"} {
		if _, _, err := parseKey([]string{value}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want an error with %q", value, err, why)
		}
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
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, _, err := parseKey([]string{value})
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
		if again, _, err := parseKey([]string{quoted}); err != nil || again != key {
			t.Errorf("%q: quoted as %q it is %q, %v", key, quoted, again, err)
		}
	})
}
