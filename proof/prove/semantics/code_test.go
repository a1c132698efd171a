package semantics

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each assumption names code that is there, as a function, a method or a value.
func TestCodeIsThere(t *testing.T) {
	t.Parallel()
	for _, a := range All() {
		if a.Text == "" || len(a.Code) == 0 || a.Writes == 0 {
			t.Errorf("%+v isn't complete", a)
		}
		for _, code := range a.Code {
			slash := strings.LastIndexByte(code, '/') + 1
			pkg, name, _ := strings.Cut(code[slash:], ".")
			form := `(?m)^(func |const |var |\t)` + name + `\b`
			if of, method, is := strings.Cut(name, "."); is {
				form = `(?m)^func \(\w* ?\*?` + of + `\) ` + method + `\(`
			}
			files, err := filepath.Glob(filepath.Join("..", "..", "..", code[:slash]+pkg, "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			there := false
			for _, file := range files {
				src, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				there = there || regexp.MustCompile(form).Match(src)
			}
			if !there {
				t.Errorf("%s: there is no %s", a.Name, code)
			}
		}
	}
}
