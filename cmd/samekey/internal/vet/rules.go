package vet

import (
	"golang.org/x/tools/go/analysis"
)

// page is the address of the page about the rules. With a rule's name appended, it leads to
// the rule's section.
const page = "https://github.com/samekey/samekey/blob/main/docs/use/vet.md#"

// Analyzers returns the rules.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{effects, assigns, goroutines, keys, lookups, names, results, answers, safe, callers, ignores}
}

func newRule(name, doc string, check func(*code) []finding) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: name, Doc: doc, URL: page + name,
		Requires: []*analysis.Analyzer{finder},
		Run: func(pass *analysis.Pass) (any, error) {
			c := pass.ResultOf[finder].(*code)
			report(pass, c, name, check(c))
			return nil, nil
		},
	}
}
