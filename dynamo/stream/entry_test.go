package stream_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/state"
)

// Each reason of the list has a constant here, and the page says what the sweep does about
// it.
func TestReasonsAreListed(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	constants, page, listed := read("entry.go"), read("../../docs/operate/background.md"), read("../../internal/state/reasons.go")
	names := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^\t(Reason\w+) +Reason = "(\w+)"`).FindAllStringSubmatch(listed, -1) {
		names[m[2]] = m[1]
	}
	for _, r := range state.Reasons {
		name := names[string(r.Reason)]
		if name == "" || !regexp.MustCompile(`(?m)^\t`+name+` += state\.`+name+` `).MatchString(constants) {
			t.Errorf("entry.go has no constant for %s", r.Reason)
		}
		if !strings.Contains(page, "\n| `"+string(r.Reason)+"` | ") {
			t.Errorf("docs/operate/background.md says nothing about %s", r.Reason)
		}
	}
}
