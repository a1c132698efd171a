package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// CONTRIBUTING says where things are: each file that an entry names lies in the entry's
// first folder, or is named with its own.
func TestContributingNamesFiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile("`([a-z_/]*[a-z_]+\\.go)`")
	_, places, _ := strings.Cut(string(page), "## Where things are")
	places, _, _ = strings.Cut(places, "\n## ")
	named := 0
	for entry := range strings.SplitSeq(places, "\n- ") {
		entry, _, _ = strings.Cut(entry, "\n\n")
		folder, rest, _ := strings.Cut(strings.TrimPrefix(entry, "`"), "`")
		if !strings.HasSuffix(folder, "/") {
			continue
		}
		for _, m := range file.FindAllStringSubmatch(rest, -1) {
			named++
			path := m[1]
			if !strings.Contains(path, "/") {
				path = folder + path
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil {
				t.Errorf("%s: %s is not there", folder, path)
			}
		}
	}
	if named < 20 {
		t.Errorf("%d files are named: something is wrong with this test", named)
	}
}
