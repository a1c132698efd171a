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

// golangci-lint itself prints the name of a rule before the message.
func TestMessagesHaveNoPrefix(t *testing.T) {
	t.Parallel()
	rule := &analysis.Analyzer{Name: "rule", Run: func(pass *analysis.Pass) (any, error) {
		pass.Report(analysis.Diagnostic{Message: "rule: mend it"})
		return nil, nil
	}}
	var got []string
	pass := &analysis.Pass{Report: func(d analysis.Diagnostic) { got = append(got, d.Message) }}
	if _, err := withoutPrefix(rule).Run(pass); err != nil || len(got) != 1 || got[0] != "mend it" {
		t.Errorf("%q, %v", got, err)
	}
}
