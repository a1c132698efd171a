// Package golangci makes the rules of samekey vet a module plugin of golangci-lint,
// under the name samekey. See docs/vet.md.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/samekey/samekey/internal/vet"
)

func init() {
	register.Plugin("samekey", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

// plugin has no settings.
type plugin struct{}

// BuildAnalyzers returns the rules.
func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return vet.Analyzers(), nil }

// GetLoadMode says that the rules need types.
func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
