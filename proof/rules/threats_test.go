package rules

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/operate/threats.md has a row for each threat, and each row names tests that exist. A row
// that says "not yet" has no test.
func TestThreatsNameTheirTests(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(root + "/docs/operate/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("`([^`]+)`")
	tests := make(tests)
	rows := 0
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "| T") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.HasPrefix(strings.TrimSpace(cells[0]), fmt.Sprintf("T%d ", rows)) {
			t.Errorf("row %d: %s", rows, line)
			continue
		}
		held := strings.TrimSpace(cells[2])
		if strings.HasPrefix(held, "not yet: ") {
			continue
		}
		names := code.FindAllStringSubmatch(held, -1)
		if len(names) == 0 {
			t.Errorf("T%d is held by nothing", rows)
		}
		for _, name := range names {
			if err := tests.find(name[1]); err != nil {
				t.Errorf("T%d is held by %s: %v", rows, name[1], err)
			}
		}
	}
	const threats = 17
	if rows != threats {
		t.Errorf("%d rows, want %d", rows, threats)
	}
}
