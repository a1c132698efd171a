package idem

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
)

type (
	inner struct{ A int }
	own   int

	first  struct{ A int }
	second struct{ A int }

	halfMoney struct{ amount int }
)

// halfMoney has its JSON on its pointer only, which encoding/json can't call for a value.
func (h *halfMoney) MarshalJSON() ([]byte, error) { return []byte(strconv.Itoa(h.amount)), nil }
func (h *halfMoney) UnmarshalJSON([]byte) error   { return nil }

// A resumed run goes on with what the record has of a result: a result of which storing
// would lose a part is refused, by the part's name.
func TestLostParts(t *testing.T) {
	t.Parallel()
	hidden := struct {
		A int
		b int
	}{1, 2}
	one := 1
	encodes := func(_ []byte, err error) error { return err }
	for name, tc := range map[string]struct {
		err  error
		want string // "": stored
	}{
		"a hidden field":                       {encodes(encodeResult(hidden)), ".b is lost"},
		"a type with JSON on its pointer only": {encodes(encodeResult(halfMoney{5})), ".amount is lost"},
		"a hidden field, empty":                {encodes(encodeResult(struct{ a int }{})), ""},
		"a field that is left out": {encodes(encodeResult(struct {
			A int `json:"-"`
		}{1})), ".A is lost"},
		"left out, empty": {encodes(encodeResult(struct {
			A int `json:"-"`
		}{})), ""},
		"omitted, empty": {encodes(encodeResult(struct {
			A []int `json:",omitempty"`
		}{[]int{}})), ""},
		"hidden, behind a pointer": {encodes(encodeResult(&hidden)), ".b is lost"},
		"hidden, in any":           {encodes(encodeResult[any](hidden)), ".b is lost"},
		"hidden, behind, in any":   {encodes(encodeResult[any](&hidden)), ".b is lost"},
		"hidden, in a list of any": {encodes(encodeResult([]any{1, hidden})), ".b is lost"},
		"hidden, in any list":      {encodes(encodeResult[any]([]any{1, hidden})), ".b is lost"},
		"hidden, in an any array":  {encodes(encodeResult[any]([1]any{[1]any{hidden}})), ".b is lost"},
		"hidden, in a map":         {encodes(encodeResult(map[int]any{1: hidden})), ".b is lost"},
		"hidden, in any map":       {encodes(encodeResult[any](map[string]any{"a": map[string]any{"b": hidden}})), ".b is lost"},
		"hidden, deeper":           {encodes(encodeResult(struct{ In []struct{ In any } }{[]struct{ In any }{{hidden}}})), ".In[\u2026].In.b is lost"},
		"a text":                   {encodes(encodeResult("\xff")), "another value"},
		"a text in a list":         {encodes(encodeResult([]string{"a", "\xff"})), "another value"},
		"a text in an array":       {encodes(encodeResult([1]string{"\xff"})), "another value"},
		"a text in a map":          {encodes(encodeResult(map[string]string{"a": "\xff"})), "another value"},
		"a name in a map":          {encodes(encodeResult(map[string]int{"\xff": 1})), "another value"},
		"two names become one":     {encodes(encodeResult(map[string]int{"\xff": 1, "\xfe": 1})), "read back"},
		"other keys":               {encodes(encodeResult(map[int]string{1: "a"})), ""},
		"keys that are texts":      {encodes(encodeResult(map[netip.Addr]int{netip.MustParseAddr("::1"): 1})), ""},
		"a pointer":                {encodes(encodeResult(struct{ P, Q *int }{&one, nil})), ""},
		"nil":                      {encodes(encodeResult[*int](nil)), ""},
		"an embedded struct":       {encodes(encodeResult(struct{ inner }{inner{1}})), ""},
		"an embedded pointer":      {encodes(encodeResult(struct{ *inner }{&inner{1}})), "can't be read back"},
		"an embedded number":       {encodes(encodeResult(struct{ own }{1})), ".own is lost"},
		"a time":                   {encodes(encodeResult(time.Now())), ""},
		"JSON of its own":          {encodes(encodeResult(struct{ R json.RawMessage }{json.RawMessage("{}")})), ""},
		"no JSON":                  {encodes(encodeResult(make(chan int))), "unsupported"},
		"raw JSON, not UTF-8":      {encodes(encodeResult(json.RawMessage("\"caf\xe9\""))), "UTF-8"},
		"a field of raw JSON":      {encodes(encodeResult(struct{ R json.RawMessage }{json.RawMessage("\"\xff\"")})), "UTF-8"},
		"a name in raw JSON":       {encodes(encodeResult(json.RawMessage("{\"\xff\":1}"))), "UTF-8"},
		"raw JSON":                 {encodes(encodeResult(json.RawMessage(" {\"é\": \"<\\ud800\"}\n"))), ""},
		"two embedded of one name": {encodes(encodeResult(struct {
			first
			second
		}{first{1}, second{2}})), "is lost"},
		"a number of another value": {encodes(encodeResult[any](int64(1<<53 + 1))), "another value"},
	} {
		if tc.want == "" && tc.err != nil || tc.want != "" && (!errors.Is(tc.err, ErrResult) || !strings.Contains(tc.err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, tc.err, tc.want)
		}
	}
}

// A program whose phase returns another type must have a place for all that is recorded.
func TestMissingParts(t *testing.T) {
	t.Parallel()
	type other struct {
		A    int            `json:",omitempty"`
		List []int          `json:"list,omitempty"`
		In   *inner         `json:"in,omitempty"`
		Map  map[string]int `json:",omitempty"`
	}
	for stored, tc := range map[string]struct {
		v    other
		want string
	}{
		`{"A":1}`:                        {other{A: 1}, ""},
		`{"a":1}`:                        {other{A: 1}, ""},
		`{"A":1,"B":2}`:                  {other{A: 1}, "B"},
		`{"B":0,"C":"","D":false}`:       {other{}, ""},
		`{"B":null,"C":[],"D":{}}`:       {other{}, ""},
		`{"B":{"C":1}}`:                  {other{}, "B.C"},
		`{"list":[1,2]}`:                 {other{List: []int{1}}, "list[1]"},
		`{"list":[1,0]}`:                 {other{List: []int{1}}, ""},
		`{"in":{"A":1,"x":[0,{"y":2}]}}`: {other{In: &inner{1}}, "in.x[1].y"},
		`{"Map":{"a":1,"A":2}}`:          {other{Map: map[string]int{"a": 1, "A": 2}}, ""},
		`1`:                              {other{}, "the value"},
		`{`:                              {other{}, "the whole"},
	} {
		if got := missing([]byte(stored), tc.v); got != tc.want {
			t.Errorf("%s: %q, want %q", stored, got, tc.want)
		}
	}
}
