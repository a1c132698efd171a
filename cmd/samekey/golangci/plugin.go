// Package golangci makes the rules of samekey vet a module plugin of golangci-lint. The
// plugin's name is samekey. See docs/use/vet.md.
package golangci

import (
	"strings"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/samekey/samekey/cmd/samekey/internal/vet"
)

func init() {
	register.Plugin("samekey", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

// plugin has no settings.
type plugin struct{}

// BuildAnalyzers returns the rules.
func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	rules := vet.Analyzers()
	for i, a := range rules {
		rules[i] = withoutPrefix(a)
	}
	return rules, nil
}

// GetLoadMode says that the rules need types.
func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }

// withoutPrefix removes the rule's name from the messages, because golangci-lint adds the
// name.
func withoutPrefix(rule *analysis.Analyzer) *analysis.Analyzer {
	a := *rule
	a.Run = func(pass *analysis.Pass) (any, error) {
		p := *pass
		p.Report = func(d analysis.Diagnostic) {
			d.Message = strings.TrimPrefix(d.Message, rule.Name+": ")
			pass.Report(d)
		}
		return rule.Run(&p)
	}
	return &a
}
