package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// The pages stay short: the README is read to its end, and the shelves in a day. With
// -v it prints the words of each shelf, generated tables included.
func TestWords(t *testing.T) {
	t.Parallel()
	shelves, all := map[string]int{}, 0
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		rel, err := filepath.Rel(filepath.Join(root, "docs"), filepath.Dir(path))
		if err != nil {
			return err
		}
		n := wordsOf(t, path)
		shelves[filepath.ToSlash(rel)] += n
		all += n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	readme := wordsOf(t, filepath.Join(root, "README.md"))
	t.Logf("README %d; docs %d, of which start %d, use %d, operate %d, inside %d, decisions %d",
		readme, all, shelves["start"], shelves["use"], shelves["operate"], shelves["inside"], shelves["inside/decisions"])
	for _, shelf := range []string{"start", "use", "operate", "inside", "inside/decisions"} {
		if shelves[shelf] == 0 {
			t.Errorf("the shelf %s is empty: something is wrong with this test", shelf)
		}
	}
	const maxReadme, maxDocs = 900, 66_500
	if readme > maxReadme || all > maxDocs {
		t.Errorf("README %d words, at most %d; docs %d, at most %d: shorten a page before you lengthen another", readme, maxReadme, all, maxDocs)
	}
}

// wordsOf counts the words of a page: what has a letter or a digit, between spaces.
func wordsOf(t *testing.T, path string) (n int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for w := range strings.FieldsSeq(string(b)) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}
