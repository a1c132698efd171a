package shape_test

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/base/shape"
)

type (
	charge struct {
		ID     string         `json:"id"`
		Amount int            `json:"amount"`
		Note   string         `json:"note,omitempty"`
		Rate   float64        `json:"rate"`
		Paid   bool           `json:"paid"`
		At     time.Time      `json:"at"`
		Card   *card          `json:"card"`
		Lines  []line         `json:"lines"`
		Meta   map[string]int `json:"meta,omitzero"`
		Any    any            `json:"any"`
		hidden int
	}
	card     struct{ Last4 string }
	line     struct{ N uint8 }
	embeds   struct{ card }
	optional struct {
		*card
		X string `json:"-"`
	}
	twice struct {
		card
		Last4 int
	}
	myself struct {
		*myself //nolint:unused // its shape is asked for
		Next    *myself
	}
	pointer *pointer
	odd     struct {
		A int `json:"a?"`
	}
	wide struct {
		ALongNameForAField0, ALongNameForAField1, ALongNameForAField2, ALongNameForAField3, ALongNameForAField4, ALongNameForAField5 struct {
			AnotherLongNameForAField0, AnotherLongNameForAField1, AnotherLongNameForAField2, AnotherLongNameForAField3 string
		}
	}
)

// A type's shape has the names and kinds of what its JSON has, and no longer text than it may.
func TestOf(t *testing.T) {
	t.Parallel()
	_ = charge{}.hidden
	for _, tt := range []struct {
		of   reflect.Type
		want string
	}{
		{reflect.TypeFor[charge](), `{"id":"","amount":0,"note?":"","rate":0.5,"paid":false,"at":"","card?":{"Last4":""},"lines":[{"N":0}],"meta?":{"*":0},"any":null}`},
		{reflect.TypeFor[*charge](), shape.Of(reflect.TypeFor[charge]())},
		{reflect.TypeFor[string](), `""`},
		{reflect.TypeFor[[]byte](), `""`},
		{reflect.TypeFor[[2]byte](), `[0]`},
		{reflect.TypeFor[json.Number](), `0.5`},
		{reflect.TypeFor[netip.Addr](), `""`},
		{reflect.TypeFor[struct{}](), `{}`},
		{reflect.TypeFor[embeds](), `{"Last4":""}`},
		{reflect.TypeFor[optional](), `{"Last4?":""}`},
		{reflect.TypeFor[struct {
			N int `json:",string"`
		}](), `{"N":""}`},
		{reflect.TypeFor[any](), ""},
		{reflect.TypeFor[json.RawMessage](), ""},
		{reflect.TypeFor[big.Int](), ""},
		{reflect.TypeFor[twice](), ""},
		{reflect.TypeFor[odd](), ""},
		{reflect.TypeFor[chan int](), ""},
		{reflect.TypeFor[pointer](), ""},
	} {
		got := shape.Of(tt.of)
		if got != tt.want {
			t.Errorf("%v: %s, not %s", tt.of, got, tt.want)
		}
		if got != "" && shape.Check(got, []byte(shape.Example(got))) != nil {
			t.Errorf("%v: the example %s is no result", tt.of, shape.Example(got))
		}
	}
	if got := shape.Of(reflect.TypeFor[myself]()); got != "" {
		t.Errorf("a type in itself has a field twice: %s", got)
	}
	if got := shape.Of(reflect.TypeFor[wide]()); !strings.Contains(got, `"ALongNameForAField5":null`) || len(got) > shape.Max {
		t.Errorf("a wide type: %s", got)
	}
}

// What a program has written has the shape of its type.
func TestWrittenResultsFit(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		charge{},
		charge{Note: "x", Card: &card{"4242"}, Lines: []line{{1}}, Meta: map[string]int{"a": 1}, Any: 1.5},
		"ch_1", 1, 1.5, true, []int(nil),
		[]int{1},
		map[string]bool(nil),
		map[string]bool{"a": true},
		embeds{},
		optional{},
		optional{card: &card{}},
		struct{}{},
	} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := shape.Check(shape.Of(reflect.TypeOf(v)), raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// What is missing, too much, or of another kind is refused, by its name.
func TestCheck(t *testing.T) {
	t.Parallel()
	const of = `{"id":"","amount":0,"rate":0.5,"ok":false,"note?":"","lines":[{"n":0}],"meta":{"*":0},"any":null}`
	whole := func(change func(map[string]any)) string {
		all := map[string]any{"id": "ch_1", "amount": 1, "rate": 1, "ok": true, "lines": []any{map[string]any{"n": 1}}, "meta": map[string]any{"a": 1}, "any": "x"}
		change(all)
		raw, _ := json.Marshal(all)
		return string(raw)
	}
	set := func(name string, v any) string { return whole(func(all map[string]any) { all[name] = v }) }
	for _, tt := range []struct{ shape, result, want string }{
		{of, whole(func(map[string]any) {}), ""},
		{of, set("note", nil), ""},
		{of, set("note", "x"), ""},
		{of, set("lines", nil), ""},
		{of, set("meta", nil), ""},
		{of, set("any", nil), ""},
		{of, `{}`, `"amount" is missing`},
		{of, whole(func(all map[string]any) { delete(all, "any") }), `"any" is missing`},
		{of, set("ID", "x"), `there is no field "ID"`},
		{of, set("id", 1), `"id" is a text, not a number`},
		{of, set("id", nil), `"id" is a text, not null`},
		{of, set("amount", 1.5), `"amount" is a whole number, not a number`},
		{of, set("rate", "1"), `"rate" is a number, not a text`},
		{of, set("ok", "true"), `"ok" is true or false, not a text`},
		{of, set("note", 1), `"note" is a text, not a number`},
		{of, set("lines", "x"), `"lines" is a list, not a text`},
		{of, set("lines", []any{1}), `"lines[0]" is an object, not a number`},
		{of, set("meta", map[string]any{"a": "x"}), `"meta.a" is a whole number, not a text`},
		{of, set("meta", 1), `"meta" is an object, not a number`},
		{of, `"ch_1"`, "the result is an object, not a text"},
		{of, `null`, "the result is an object, not null"},
		{`""`, `{}`, `the result is a text, not an object; the program reads "TEXT"`},
		{`{}`, `{}`, ""},
		{`{}`, `{"a":1}`, `there is no field "a"`},
		{"", `{"a":1}`, ""},
		{"no JSON", `{"a":1}`, ""},
		{`[]`, `[1]`, ""},
		{`""`, `{`, "EOF"},
	} {
		err := shape.Check(tt.shape, []byte(tt.result))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s of %s: %v, not %s", tt.result, tt.shape, err, tt.want)
		}
	}
}
