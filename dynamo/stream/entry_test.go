package stream_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/internal/state"
)

// The constants are the list's names, besides those that only hooks tell, and the page
// says what the sweep does about each.
func TestReasonsAreListed(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("entry.go")
	if err != nil {
		t.Fatal(err)
	}
	told := []string{string(stream.ReasonExpiredOpen), string(stream.ReasonJobLost)}
	for _, m := range regexp.MustCompile(`(?m)^\tReason\w+ +Reason = "(\w+)"`).FindAllSubmatch(source, -1) {
		told = append(told, string(m[1]))
	}
	listed := []string{string(stream.ReasonExpiredOpen), string(stream.ReasonJobLost)}
	page, err := os.ReadFile("../../docs/operate/background.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range state.Reasons {
		listed = append(listed, string(r.Reason))
		if !strings.Contains(string(page), "\n| `"+string(r.Reason)+"` | ") {
			t.Errorf("docs/operate/background.md says nothing about %s", string(r.Reason))
		}
	}
	slices.Sort(told)
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Compact(listed), slices.Compact(told)); diff != "" {
		t.Errorf("reasons (-list +constants):\n%s", diff)
	}
}
