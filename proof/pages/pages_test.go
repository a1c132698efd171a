package pages_test

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"

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
<<<<<<< HEAD
	if diff := cmp.Diff([]string{"check-checks", "check-report", "check-rules", "commands", "doctor"}, others); diff != "" {
=======
	if diff := cmp.Diff([]string{"breaks", "check-checks", "check-report", "check-rules", "commands", "costs", "doctor", "prove-policy"}, others); diff != "" {
>>>>>>> 30c30676 (bench: count paths in tests, and play peers by one script)
		t.Errorf("blocks that nothing here generates (-want +got):\n%s", diff)
	}
}

type table = pagetest.Table

func code(s string) string { return pagetest.Code(s) }
