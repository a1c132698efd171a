package pages_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/metrictable"
	"github.com/samekey/samekey/internal/testkit/pagetest"
)

var update = flag.Bool("update", false, "write generated blocks anew")

// root is the repository, from here.
const root = "../.."

// pages returns every Markdown file of the repository, by its path from root.
func pages(t *testing.T) map[string]string { t.Helper(); return pagetest.Pages(t, root) }

// Tables of what the engine does are made by the engine. Those about the command are made by
// a test of the command.
func TestGeneratedBlocks(t *testing.T) {
	t.Parallel()
	others := pagetest.Blocks(t, root, *update, generators)
	if diff := cmp.Diff([]string{"breaks", "check-checks", "check-report", "check-rules", "commands", "costs", "doctor"}, others); diff != "" {
		t.Errorf("blocks that nothing here generates (-want +got):\n%s", diff)
	}
}

type table = pagetest.Table

func code(s string) string { return pagetest.Code(s) }

// metricsTable is the list of the metrics of package lambda/metrics.
func metricsTable(*testing.T) string {
	var b strings.Builder
	from := ""
	for _, m := range metrictable.All() {
		if m.Source != from {
			from = m.Source
			fmt.Fprintf(&b, "\nFrom the %s:\n\n", from)
		}
		meaning := m.Meaning
		if m.Alarm.Name != "" {
			meaning += " (alarm)"
		}
		if m.Unit != "Count" {
			meaning += " (" + m.Unit + ")"
		}
		fmt.Fprintf(&b, "- `%s`: %s\n", m.Name, meaning)
	}
	return b.String()
}
