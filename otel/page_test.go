package otel_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/samekey/samekey/otel"
)

func TestAttributesAreOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operate/signals.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| attribute | meaning |\n| --- | --- |\n")
	for _, a := range otel.Attributes() {
		fmt.Fprintf(&want, "| `%s` | %s |\n", a[0], a[1])
	}
	if !strings.Contains(string(page), "\n"+want.String()+"\n") {
		t.Errorf("docs/operate/signals.md lacks the table\n%s", want.String())
	}
}
