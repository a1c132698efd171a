package lock

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shapeOf returns the shape of the type T in a source. The type Own has its own JSON encoding.
func shapeOf(t *testing.T, source string) Shape {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", "package p; "+source, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := new(types.Config).Check("p", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ShapeOf(pkg.Scope().Lookup("T").Type(), func(t types.Type) bool { return t.String() == "p.Own" })
}

// A shape has the fields and types that encoding/json sees, since the
// engine compares stored results with them.
func TestShapeOf(t *testing.T) {
	t.Parallel()
	got := shapeOf(t, `type (
	Own struct { X int }
	base struct { ID bool; Name string }
	Deep struct { Far float64 }
	Line struct { Price uint8 }
	Note string
	Alias = *Line
	T struct {
		ID int
		base
		*Deep
		Own
		Note
		Line   `+"`json:\"line\"`"+`
		secret int
		Dash   int `+"`json:\"-,\"`"+`
		Out    bool `+"`json:\"-\"`"+`
		Count  int `+"`json:\"n,string\"`"+`
		Ratio  float32 `+"`json:\",omitempty\"`"+`
		Yes    bool
		Bytes  []byte
		Wide   []uint16
		Lines  []Line
		Pair   [2]string
		By     map[string]Alias
		Any    any
		Next   *T
		Chan   chan int
	}
)`)
	line := map[string]any{"Price": "int"}
	want := map[string]any{
		"ID": "int", "Name": "string", "Far": "float", "Own": "p.Own", "Note": "string", "line": line, "-": "int", "n": "string", "Ratio": "float", "Yes": "bool",
		"Bytes": "bytes", "Wide": []any{"int"}, "Lines": []any{line}, "Pair": []any{"string"}, "By": map[string]any{"*": line}, "Any": "any", "Next": "p.T", "Chan": "chan int",
	}
	if diff := cmp.Diff(Shape(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The parts of a provider's types are too many to list: such a type has its name as its shape.
func TestAHugeTypeHasTheShapeOfItsName(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	source.WriteString("type T struct { D0 *D0 }; type D16 int;")
	for i := range 16 {
		fmt.Fprintf(&source, "type D%d struct { A, B *D%d };", i, i+1)
	}
	if got := shapeOf(t, source.String()); got != "p.T" {
		t.Errorf("%.100v", got)
	}
}

// lost names a part of a stored value that has no place in the present type.
func TestLost(t *testing.T) {
	t.Parallel()
	type fields = map[string]any
	for name, c := range map[string]struct {
		was, is Shape
		want    string
	}{
		"anything holds it":      {"string", "any", ""},
		"a float holds an int":   {"int", "float", ""},
		"an int, and no float":   {"float", "int", "x was float and is now int"},
		"more fields":            {fields{"a": "int"}, fields{"a": "int", "b": "int"}, ""},
		"a field in other case":  {fields{"Lines": []any{fields{"Price": "int"}}}, fields{"lines": []any{fields{"Price": "string"}}}, "x.Lines[…].Price was int and is now string"},
		"the field of that case": {fields{"a": "int"}, fields{"a": "int", "A": "string"}, ""},
		"a struct for a map":     {fields{"*": "int"}, fields{"a": "int"}, "x was a map and is now a struct"},
		"a map for a struct":     {fields{"*": "int", "a": "int"}, fields{"*": "int"}, "x was a struct and is now a map"},
		"no list":                {[]any{"int"}, "int", "x was a list and is now int"},
		"a list of nothing":      {[]any{}, []any{"int"}, "x was a list and is now a list"},
	} {
		if got := lost(c.was, c.is, "x"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// ShapeOf ends for a struct that embeds itself.
func TestShapeOfAStructInItself(t *testing.T) {
	t.Parallel()
	if got := shapeOf(t, "type T struct { *T; X int }"); got != "p.T" {
		t.Errorf("%v", got)
	}
}
