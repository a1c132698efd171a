package idem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Which bodies are one request under ACP.
func TestExactJSON(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("1234567890", 1000)
	for name, tc := range map[string]struct {
		a, b string
		same bool
	}{
		"member order":              {`{"a":1,"b":[2,{"c":3,"d":4}]}`, `{"b":[2,{"d":4,"c":3}],"a":1}`, true},
		"white space":               {`{"a":[1,2]}`, " {\n\"a\" :\t[ 1 , 2 ] } ", true},
		"array order":               {`[1,2]`, `[2,1]`, false},
		"null and absent":           {`{"a":1,"b":null}`, `{"a":1}`, false},
		"null and false":            {`{"a":null}`, `{"a":false}`, false},
		"null and nothing":          {`null`, `{}`, false},
		"text and number":           {`"1"`, `1`, false},
		"case of a name":            {`{"A":1}`, `{"a":1}`, false},
		"nesting":                   {`[[1],2]`, `[1,[2]]`, false},
		"a name or its value":       {`{"a":"b"}`, `{"b":"a"}`, false},
		"escapes":                   {`"\u0061\/\u00e9\n\ud83d\ude00"`, "\"a/é\\u000a😀\"", true},
		"the first pair":            {`"\ud800\udc00"`, "\"\U00010000\"", true},
		"the last pair":             {`"\udbff\udfff"`, "\"\U0010ffff\"", true},
		"around the surrogates":     {`"\ud7ff\ue000"`, "\"\ud7ff\ue000\"", true},
		"an escaped quote":          {`"\""`, `"\u0022"`, true},
		"a quote in a text":         {`["a","b"]`, `["a\",\"b"]`, false},
		"the replacement character": {"\"\ufffd\"", `"\ufffd"`, true},

		"1.0 is 1":                  {`1.0`, `1`, true},
		"100 is 1e2":                {`100`, `1e2`, true},
		"1e2 is 1E+02":              {`1e2`, `1E+02`, true},
		"0.001 is 1e-3":             {`0.001`, `1e-3`, true},
		"10e-1 is 1":                {`10e-1`, `1`, true},
		"-0 is 0":                   {`-0`, `0`, true},
		"-0.0e-5 is 0":              {`-0.0e-5`, `0e9999`, true},
		"-1 isn't 1":                {`-1`, `1`, false},
		"1e400 is itself":           {`1e400`, `10E399`, true},
		"1e400 isn't 1e401":         {`1e400`, `1e401`, false},
		"1e400 isn't 2e400":         {`1e400`, `2e400`, false},
		"1e-400 isn't 0":            {`1e-400`, `0`, false},
		"2^53+1 isn't 2^53":         {`9007199254740993`, `9007199254740992`, false},
		"2^53+1 is itself":          {`9007199254740993`, `9007199254740993.00`, true},
		"a long fraction":           {`0.1000000000000000055511151231257827`, `0.1`, false},
		"a long fraction is itself": {`0.1000000000000000055511151231257827`, `1000000000000000055511151231257827e-34`, true},
		"10,000 digits":             {digits, digits + ".0", true},
		"10,000 digits, scaled":     {digits, digits[:1] + "." + digits[1:] + "e9999", true},
		"10,000 digits, the last":   {digits, digits[:9999] + "1", false},
		"a huge exponent":           {`1e99999999999999999999`, `10e99999999999999999998`, true},
		"another huge exponent":     {`1e99999999999999999999`, `1e99999999999999999998`, false},
		"a carry":                   {`10e99999999999999999999`, `1e100000000000000000000`, true},
		"a borrow":                  {`0.1e100000000000000000000`, `1e99999999999999999999`, true},
		"a huge negative exponent":  {`0.1e-99999999999999999999`, `1e-100000000000000000000`, true},
		"a negative borrow":         {`10e-100000000000000000000`, `1e-99999999999999999999`, true},
		"zeros in an exponent":      {`1e0000000000000000000000000007`, `10000000`, true},
		"signs of huge exponents":   {`1e99999999999999999999`, `1e-99999999999999999999`, false},
	} {
		a, err1 := exactJSON([]byte(tc.a))
		b, err2 := exactJSON([]byte(tc.b))
		if err := errors.Join(err1, err2); err != nil || bytes.Equal(a, b) != tc.same {
			t.Errorf("%s: %.80s and %.80s, %v: want the same %t", name, a, b, err, tc.same)
		}
	}
	for body, want := range map[string]error{
		"": errNotCanonical, "{}{}": errNotCanonical, "{": errNotCanonical, "1.": errNotCanonical, "01": errNotCanonical, "\ufeff{}": errNotCanonical, "NaN": errNotCanonical,
		`{"a":1,"a":1}`: errTwice, `{"a":1,"\u0061":2}`: errTwice, `[{"b":{"a":1,"c":2,"a":3}}]`: errTwice,
		`{"A":1,"a":1}`: errCase, `{"amount":1,"b":2,"AMOUNT":3}`: errCase, `[{"É":1,"\u00e9":2}]`: errCase, `{"kind":1,"Kind":2}`: errCase, "{\"s\":1,\"ſ\":2}": errCase, // Go's decoder takes the last
		"\"\xff\"": errNotUTF8, `"\ud800"`: errSurrogate, `"\udc00\ud800"`: errSurrogate, `"\ud800x"`: errSurrogate, `"\ud800\n"`: errSurrogate, `"\ud800\ud800\udc00"`: errSurrogate, `"\ud800x\udc00"`: errSurrogate, `"\ud800\n\udc00"`: errSurrogate, `"\udfff"`: errSurrogate, `"\udbff"`: errSurrogate, `{"\ud800":1}`: errSurrogate,
		strings.Repeat("[", 202) + strings.Repeat("]", 202): errTooDeep,
		`"` + strings.Repeat("x", 1<<20-2) + `"`:            nil, `"` + strings.Repeat("x", 1<<20-1) + `"`: errTooLong,
	} {
		if form, err := exactJSON([]byte(body)); !errors.Is(err, want) {
			t.Errorf("%.40q became %q, %v; want %v", body, form, err, want)
		}
	}
}

// No number costs more than its bytes: exponents and digits of half a megabyte are compared,
// and never expanded. (An expansion would take hours.)
func TestExactJSONIsCheap(t *testing.T) {
	t.Parallel()
	const size = 1 << 19
	nines := strings.Repeat("9", size)
	for name, body := range map[string]string{
		"digits": nines, "a fraction": "0." + nines, "an exponent": "1e" + nines, "a negative exponent": "10e-" + nines,
		"zeros": "1" + strings.Repeat("0", size), "small numbers": "[" + strings.Repeat("1.0,", size/4) + "1]", "members": string(nestedJSON(maxDepth-1, size)),
	} {
		if form, err := exactJSON([]byte(body)); err != nil || len(form) > 2*len(body)+32 {
			t.Errorf("%s: %d bytes became %d, %v", name, len(body), len(form), err)
		}
	}
}

// FuzzExactJSON: exactJSON accepts what the reference accepts, and two bodies have one form
// exactly if the reference finds them equal.
func FuzzExactJSON(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":1.0}`, `{"a":1}`},
		{`1e400`, `10e399`},
		{`-0`, `0`},
		{`9007199254740993`, `9007199254740992`},
		{`{"a":null}`, `{}`},
		{`[1,2]`, `[2,1]`},
		{`{"a":1,"a":1}`, `{"a":1}`},
		{`"\ud83d\ude00"`, `"😀"`},
		{`"\ud800"`, "\"\ufffd\""},
		{`1e99999999999999999999`, `10e99999999999999999998`},
		{`0.1e-99999999999999999999`, `1e-100000000000000000000`},
		{`{"b":{"d":1,"c":2},"a":3}`, `{"a":3,"b":{"c":2,"d":1}}`},
		{" [ ] ", "[]"},
		{`{"A":1,"a":1}`, `{"a":1,"A":1}`},
		{`{"A":1}`, `{"a":1}`},
		{`{"s":1,"ſ":1}`, `{"ſ":1,"K":2}`},
		{`12345678901234567e1`, `1.2345678901234567e17`},
		{`10e-18446744073709551616`, `1e-18446744073709551615`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a)+len(b) < 1<<12 { // the reference is slow
			compared(t, a, b)
		}
	})
}

// compared compares two bodies by their forms, and reports what the reference says.
func compared(t *testing.T, a, b []byte) bool {
	t.Helper()
	formA, errA := exactJSON(a)
	formB, errB := exactJSON(b)
	refA, okA := reference(a)
	refB, okB := reference(b)
	if okA != (errA == nil) || okB != (errB == nil) {
		t.Fatalf("%q: %v, the reference accepts it: %t\n%q: %v, %t", a, errA, okA, b, errB, okB)
	}
	if !okA || !okB {
		return false
	}
	same := refA.equal(refB)
	if same != bytes.Equal(formA, formB) {
		t.Fatalf("%q became %q\n%q became %q\nthe reference: the same %t", a, formA, b, formB, same)
	}
	return same
}

// value is a JSON value of the reference: a map, a list, a text, a number, or another scalar.
type value struct {
	kind    byte // { [ " 0 or the first letter of null, true, false
	members map[string]*value
	list    []*value
	text    string
	digits  *big.Int // of a number: digits × 10^exponent
	power   *big.Int
}

func (v *value) equal(w *value) bool {
	if v.kind != w.kind {
		return false
	}
	switch v.kind {
	case '{':
		if len(v.members) != len(w.members) {
			return false
		}
		for name, m := range v.members {
			if w.members[name] == nil || !m.equal(w.members[name]) {
				return false
			}
		}
	case '[':
		return slices.EqualFunc(v.list, w.list, (*value).equal)
	case '"':
		return v.text == w.text
	case '0':
		return sameNumber(v, w)
	}
	return true
}

// sameNumber compares by big integers: the one with the larger exponent is multiplied.
func sameNumber(v, w *value) bool {
	if v.digits.Sign() == 0 || w.digits.Sign() == 0 || v.digits.Sign() != w.digits.Sign() {
		return v.digits.Sign() == w.digits.Sign()
	}
	if v.power.Cmp(w.power) < 0 {
		v, w = w, v
	}
	apart := new(big.Int).Sub(v.power, w.power)
	if apart.BitLen() > 20 { // further than any number of digits here
		return false
	}
	scaled := new(big.Int).Exp(big.NewInt(10), apart, nil)
	return scaled.Mul(scaled, v.digits).Cmp(w.digits) == 0
}

// reference reads a body by encoding/json, and number by number into big integers. It
// doesn't accept what exactJSON refuses.
func reference(body []byte) (*value, bool) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	// A half of a surrogate pair: the decoder's U+FFFD, which the body doesn't have.
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	for {
		tok, err := dec.Token()
		if err != nil {
			break
		}
		if s, ok := tok.(string); ok && strings.ContainsRune(s, utf8.RuneError) && !honest(body) {
			return nil, false
		}
	}
	dec = json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	v, ok := read(dec, 0)
	if _, err := dec.Token(); err != io.EOF {
		return nil, false
	}
	return v, ok
}

// honest reports whether each U+FFFD of the decoder is the body's own, by its count.
func honest(body []byte) bool {
	var decoded int
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	for {
		tok, err := dec.Token()
		if err != nil {
			break
		}
		if s, ok := tok.(string); ok {
			decoded += strings.Count(s, "\ufffd")
		}
	}
	own := bytes.Count(body, []byte("\ufffd"))
	for i := 0; i+6 <= len(body); i++ { // escaped ones; a backslash may be escaped itself
		if body[i] != '\\' {
			continue
		}
		if strings.EqualFold(string(body[i:i+6]), `\ufffd`) {
			own++
		}
		i++
	}
	return decoded == own
}

func read(dec *json.Decoder, depth int) (*value, bool) {
	tok, err := dec.Token()
	if err != nil || depth > maxDepth {
		return nil, false
	}
	switch tok := tok.(type) {
	case json.Delim:
		v := &value{kind: byte(tok), members: map[string]*value{}}
		for dec.More() {
			name := ""
			if tok == '{' {
				t, err := dec.Token()
				if err != nil {
					return nil, false
				}
				name = t.(string)
			}
			m, ok := read(dec, depth+1)
			if !ok {
				return nil, false
			}
			for other := range v.members {
				if strings.EqualFold(other, name) && tok == '{' { // also two that differ only in case
					return nil, false
				}
			}
			v.members[name], v.list = m, append(v.list, m)
		}
		_, err := dec.Token()
		return v, err == nil
	case string:
		return &value{kind: '"', text: tok}, true
	case json.Number:
		mantissa, exponent, _ := strings.Cut(strings.ToLower(string(tok)), "e")
		if exponent == "" {
			exponent = "0"
		}
		whole, fraction, _ := strings.Cut(mantissa, ".")
		digits, ok1 := new(big.Int).SetString(whole+fraction, 10)
		power, ok2 := new(big.Int).SetString(strings.TrimPrefix(exponent, "+"), 10)
		if !ok1 || !ok2 {
			return nil, false
		}
		return &value{kind: '0', digits: digits, power: power.Sub(power, big.NewInt(int64(len(fraction))))}, true
	}
	return &value{kind: fmt.Sprintf("%v", tok)[0]}, true
}
