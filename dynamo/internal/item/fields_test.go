package item

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The table says of which type each attribute is, and names nothing twice.
func TestFieldsHaveTheirKinds(t *testing.T) {
	t.Parallel()
	kinds := make(map[string]string)
	for i := range Fields {
		f := &Fields[i]
		if kinds[f.Name] != "" || f.Kind == "" {
			t.Errorf("%s is there twice, or has no kind", f.Name)
		}
		kinds[f.Name] = f.Kind
	}
	rapid.Check(t, func(t *rapid.T) {
		for name, v := range encoded(anyRecord(t)) {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember")
			if !slices.Contains(strings.Fields(kinds[name]), kind) {
				t.Fatalf("%s is a %s, in the table %q", name, kind, kinds[name])
			}
		}
	})
}

// The page about the item has every field, and names those with sealed contents.
func TestFieldsAreOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operate/item.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sealed, _ := strings.Cut(string(page), "## Sealed contents")
	sealed, _, _ = strings.Cut(sealed, "\n## ")
	for i := range Fields {
		f := &Fields[i]
		name := "`" + f.Name + "`"
		if !strings.Contains(string(page), name) {
			t.Errorf("item.md doesn't explain %s", name)
		}
		row := false
		for line := range strings.Lines(sealed) {
			cells := strings.Split(line, "|")
			row = row || len(cells) > 1 && strings.Contains(cells[1], name)
		}
		if row != f.Sealed {
			t.Errorf("%s is sealed: %t, by item.md: %t", name, f.Sealed, row)
		}
	}
}
