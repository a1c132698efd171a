package golangci

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"
)

func TestPluginHasTheRules(t *testing.T) {
	t.Parallel()
	newPlugin, err := register.GetPlugin("samekey")
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := p.BuildAnalyzers()
	if err != nil || len(rules) == 0 || p.GetLoadMode() != register.LoadModeTypesInfo {
		t.Fatalf("%d rules, %v; load mode %s", len(rules), err, p.GetLoadMode())
	}
	if err := analysis.Validate(rules); err != nil {
		t.Error(err)
	}
}
