package vet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// every runs all rules at once: so a handler that is good for one rule is good for all,
// and the SDK is loaded once.
var every = &analysis.Analyzer{
	Name: "every", Doc: "run all rules", Requires: []*analysis.Analyzer{finder},
	Run: func(pass *analysis.Pass) (any, error) {
		for _, a := range Analyzers() {
			if _, err := a.Run(pass); err != nil {
				return nil, err
			}
		}
		return nil, nil
	},
}

// Each planted mistake is found, and nothing else.
func TestPlantedMistakes(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..") // of the module, whose packages the fixtures import
	if err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	found := make(map[string]bool)
	for _, f := range folders {
		patterns = append(patterns, "./internal/cli/vet/testdata/"+f.Name())
	}
	for _, res := range analysistest.Run(t, root, every, patterns...) {
		for _, d := range res.Diagnostics {
			found[d.Category] = true
		}
	}
	for _, a := range Analyzers() {
		if a != ignores && !found[a.Name] {
			t.Errorf("no fixture has a mistake for the rule %s", a.Name)
		}
	}
}

// The address that a rule names leads to its part of the page.
func TestRulesAreExplained(t *testing.T) {
	t.Parallel()
	if err := analysis.Validate(Analyzers()); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile("../../../docs/use/vet.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Analyzers() {
		if a.URL != page+a.Name || !strings.Contains(string(text), "\n## "+a.Name+"\n") {
			t.Errorf("%s leads to %s, and docs/use/vet.md has no such part", a.Name, a.URL)
		}
	}
}
