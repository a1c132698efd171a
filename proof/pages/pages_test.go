package pages_test

import (
	"flag"
	"testing"

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
	pagetest.Blocks(t, root, *update, generators, "check-checks", "check-rules", "check-report", "commands", "doctor", "prove-policy")
}

type table = pagetest.Table

func code(s string) string { return pagetest.Code(s) }
