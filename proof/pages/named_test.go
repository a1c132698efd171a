package pages_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// named is a file that a comment names, with a section of a page.
	named = regexp.MustCompile("(?:^|[\\s(\"`])((?:[A-Za-z0-9_.-]+/)*[A-Za-z0-9_.-]+\\.(?:go|md))(?:#([\\w-]+))?\\b")
	// spanned is a file that a page names.
	spanned = regexp.MustCompile("`((?:[A-Za-z0-9_.-]+/)*[A-Za-z0-9_-]+\\.(?:go|md|sh|yaml))`")
	// docsPage is a page in any text, with a section of it.
	docsPage = regexp.MustCompile(`\b(docs/[a-z0-9/-]+\.md)(?:#([\w-]+))?`)
	// users are files of users' modules.
	users = regexp.MustCompile(`^(?:(?:orders?|other|pkg|idempotency|samekey-proof)\.|2026-12-01-NAME\.|\.\./\.\./folder/)`)
)

// Every file and section that a comment, a page or a message names is there. A comment names
// files by their path from the root, or within its own folder; a page also by their ends.
func TestNamedFilesExist(t *testing.T) {
	t.Parallel()
	all, files := pages(t), repositoryFiles(t)
	exists := func(file string) bool { _, err := os.Stat(filepath.Join(root, file)); return err == nil }
	checked := 0
	for _, file := range files {
		if path.Ext(file) != ".go" {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join(root, file), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range f.Comments {
			for _, m := range named.FindAllStringSubmatch(group.Text(), -1) {
				name, section := m[1], m[2]
				checked++
				switch below := path.Dir(file) + "/"; {
				case users.MatchString(name):
				case exists(name):
					if section != "" && !anchors(all[name])[section] {
						t.Errorf("%v: %s has no section #%s", fset.Position(group.Pos()), name, section)
					}
				case !slices.ContainsFunc(files, func(f string) bool {
					return strings.HasPrefix("/"+f, "/"+strings.TrimPrefix(below, "./")) && strings.HasSuffix(f, "/"+name)
				}):
					t.Errorf("%v: there is no %s", fset.Position(group.Pos()), name)
				}
			}
		}
	}
	// Texts of programs, templates and scripts name pages by their path.
	for _, file := range files {
		if ext := path.Ext(file); !slices.Contains([]string{".go", ".yaml", ".yml", ".sh", ".toml", ".py", ".tf", ".json"}, ext) && path.Base(file) != "Makefile" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range docsPage.FindAllStringSubmatch(string(text), -1) {
			checked++
			if page, section := all[m[1]], m[2]; page == "" || section != "" && !anchors(page)[section] {
				t.Errorf("%s: there is no %s", file, m[0])
			}
		}
	}
	for page, text := range all {
		if page == "CHANGELOG.md" || strings.Contains(page, "/decisions/") { // about the past
			continue
		}
		for _, m := range spanned.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			checked++
			if !users.MatchString(m[1]) && !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix("/"+f, "/"+m[1]) }) {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
	// CONTRIBUTING's entries name the files of their first folder.
	_, places, _ := strings.Cut(all["CONTRIBUTING.md"], "## Where things are")
	places, _, _ = strings.Cut(places, "\n## ")
	for entry := range strings.SplitSeq(places, "\n- ") {
		entry, _, _ = strings.Cut(entry, "\n\n")
		folder, rest, _ := strings.Cut(strings.TrimPrefix(entry, "`"), "`")
		for _, m := range spanned.FindAllStringSubmatch(rest, -1) {
			if strings.HasSuffix(folder, "/") && !exists(m[1]) && !exists(folder+m[1]) {
				t.Errorf("CONTRIBUTING.md: %s has no %s", folder, m[1])
			}
		}
	}
	if checked < 200 {
		t.Errorf("%d names are checked: something is wrong with this test", checked)
	}
}

// repositoryFiles returns the repository's files, by their path from root.
func repositoryFiles(t *testing.T) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "dist" || base == "testdata" || base == "node_modules"):
			return fs.SkipDir
		case !d.IsDir():
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
