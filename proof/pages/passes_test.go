package pages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// passes are the largest tables of the figures' page: measured, and computed.
func passes(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "proof", "bench", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(b), "\n## A pass over the whole table\n")
	part, _, _ = strings.Cut(part, "\n## ")
	tb := table{Head: []string{"pass", "records", "dollars", "minutes"}}
	for line := range strings.Lines(part) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) > 5 && (cells[1] == "1,000,000" || strings.HasSuffix(cells[1], "computed")) {
			tb.Add(cells[0], cells[1], cells[4], cells[5])
		}
	}
	if len(tb.Rows) == 0 {
		t.Error("the page of figures has no passes")
	}
	return tb.String()
}
