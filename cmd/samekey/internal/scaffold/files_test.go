package scaffold

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/internal/local/sam"
)

func text(t *testing.T, name string) string {
	t.Helper()
	all, err := files("example.com/shop", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.path == name {
			return f.text
		}
	}
	t.Fatalf("there is no %s", name)
	return ""
}

// The template, the Makefile and the packages fit each other.
func TestTemplateOfInit(t *testing.T) {
	t.Parallel()
	dir := ours(t)
	template, err := sam.Load(filepath.Join(dir, "template.yaml"), func(o *sam.Options) { o.Parameters = map[string]string{"Tokens": "jane:tea"} })
	if err != nil {
		t.Fatal(err)
	}
	// these parts are known only at run time
	tables, err1 := template.Tables()
	queues, err2 := template.Queues()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		template.Set(table.ID, "StreamArn", "stream:"+table.ID)
	}
	for _, q := range queues {
		template.Set(q.ID, "", "url:"+q.ID)
	}
	functions, err := template.Functions()
	if err != nil || len(functions) != 3 {
		t.Fatalf("%d functions, %v", len(functions), err)
	}
	makefile := text(t, "Makefile")
	for _, f := range functions {
		pkg := f.Source.Package
		if pkg == "." {
			rel, err := filepath.Rel(dir, f.Source.Dir)
			if err != nil {
				t.Fatal(err)
			}
			pkg = "./" + filepath.ToSlash(rel)
			if _, err := os.Stat(filepath.Join(f.Source.Dir, "main.go")); err != nil {
				t.Errorf("%s: %v", f.ID, err)
			}
		}
		if line := "-o dist/" + path.Base(pkg) + "/bootstrap " + pkg + "\n"; !strings.Contains(makefile, line) {
			t.Errorf("the Makefile has no %q", line)
		}
	}
}

// The workflow runs only targets of the Makefile.
func TestWorkflowOfInit(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Run, Uses string }
		}
	}
	if err := yaml.Unmarshal([]byte(text(t, ".github/workflows/ci.yml")), &workflow); err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(text(t, "Makefile"), -1) {
		targets = append(targets, m[1])
	}
	runs, pinned := 0, regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)
	for _, step := range workflow.Jobs["test"].Steps {
		if step.Uses != "" && !pinned.MatchString(step.Uses) {
			t.Errorf("%s is not pinned by a commit", step.Uses)
		}
		if target, ok := strings.CutPrefix(step.Run, "make "); ok {
			runs++
			if !slices.Contains(targets, target) {
				t.Errorf("there is no target %s", target)
			}
		}
	}
	if runs != 3 {
		t.Errorf("the workflow runs %d targets", runs)
	}
}
