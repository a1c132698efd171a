package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each row of a table in docs that says so names the tests that hold it, in its last
// cell.
func TestHeldTables(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "docs", "use", "sources.md"))
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- held: each row by the tests in its last cell -->\n"
	parts := strings.Split(string(raw), mark)
	if len(parts) < 2 {
		t.Fatal("docs/use/sources.md has no such table any more")
	}
	code := regexp.MustCompile("`([^`]+)`")
	tests := make(tests)
	for _, part := range parts[1:] {
		rows := strings.Split(part[:strings.Index(part+"\n\n", "\n\n")], "\n")
		if len(rows) < 3 {
			t.Errorf("an empty table: %q", rows)
		}
		for _, row := range rows[min(len(rows), 2):] {
			cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
			names := code.FindAllStringSubmatch(cells[len(cells)-1], -1)
			if len(names) == 0 {
				t.Errorf("held by nothing: %s", row)
			}
			for _, name := range names {
				if err := tests.find(name[1]); err != nil {
					t.Errorf("%s is held by %s: %v", strings.TrimSpace(cells[0]), name[1], err)
				}
			}
		}
	}
}
