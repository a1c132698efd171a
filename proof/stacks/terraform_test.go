package stacks_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/deploy"
)

// The Terraform module deploys the standalone template byte for byte, gives each of its
// parameters a variable with the same default, and passes each output on. HCL's own parser
// reads it, and evaluates it as Terraform would.
func TestTerraformIsTheStandaloneStack(t *testing.T) {
	t.Parallel()
	var template struct {
		Parameters map[string]struct {
			Type    string  `yaml:"Type"`
			Default *string `yaml:"Default"`
		} `yaml:"Parameters"`
		Outputs map[string]any `yaml:"Outputs"`
	}
	if err := yaml.Unmarshal([]byte(deploy.Standalone()), &template); err != nil {
		t.Fatal(err)
	}
	file, diags := hclsyntax.ParseConfig([]byte(deploy.Terraform()), "samekey.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	variables := map[string]cty.Value{} // as a caller sets them who must set two, and adds to a list
	given := map[string]cty.Value{
		"code_bucket": cty.StringVal("bucket"), "code_key": cty.StringVal("key"),
		"sink_arns": cty.ListVal([]cty.Value{cty.StringVal("arn:1"), cty.StringVal("arn:2")}),
	}
	var outputs []string
	var stack *hclsyntax.Body
	used := usedOnThePage(t)
	for _, b := range file.Body.(*hclsyntax.Body).Blocks {
		switch b.Type {
		case "variable":
			name := b.Labels[0]
			if attribute(t, b.Body, "description", nil).AsString() == "" {
				t.Errorf("variable %s is not described", name)
			}
			value, ok := given[name]
			if b.Body.Attributes["default"] != nil {
				if variables[name] = attribute(t, b.Body, "default", nil); !ok {
					continue
				}
			} else if !ok || used[name] == "" {
				t.Errorf("variable %s must be set; the page says %q", name, used[name])
			}
			variables[name] = value
		case "output":
			outputs = append(outputs, b.Labels[0])
			stackOutputs := cty.ObjectVal(map[string]cty.Value{"samekey": cty.ObjectVal(map[string]cty.Value{"outputs": cty.MapVal(outputValues(template.Outputs))})})
			value := attribute(t, b.Body, "value", &hcl.EvalContext{Variables: map[string]cty.Value{"aws_cloudformation_stack": stackOutputs}})
			if got := strings.ReplaceAll(b.Labels[0], "_", ""); got != strings.ToLower(value.AsString()) {
				t.Errorf("output %s has the stack's %s", b.Labels[0], value.AsString())
			}
		case "resource":
			stack = b.Body
		}
	}
	if len(outputs) != len(template.Outputs) {
		t.Errorf("outputs %v of %d", outputs, len(template.Outputs))
	}
	for name := range used {
		if _, ok := variables[name]; !ok {
			t.Errorf("the page sets %s, which is no variable", name)
		}
	}
	if stack == nil {
		t.Fatal("there is no resource")
	}
	// The template retains the table of a stack that is deleted. Terraform would also make another
	// stack, with an empty table, for another name.
	var kept bool
	for _, b := range stack.Blocks {
		kept = kept || b.Type == "lifecycle" && attribute(t, b.Body, "prevent_destroy", nil).True()
	}
	if !kept {
		t.Error("Terraform may replace the stack, and so its table")
	}
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(variables)}, Functions: map[string]function.Function{"join": stdlib.JoinFunc}}
	if diff := cmp.Diff(deploy.Standalone(), attribute(t, stack, "template_body", ctx).AsString()); diff != "" {
		t.Errorf("the template that Terraform deploys (-want +got):\n%s", diff)
	}
	got, want := map[string]string{}, map[string]string{"CodeBucket": "bucket", "CodeKey": "key", "SinkArns": "arn:1,arn:2"}
	for name, v := range attribute(t, stack, "parameters", ctx).AsValueMap() {
		got[name] = v.AsString()
	}
	for name, p := range template.Parameters {
		if _, ok := want[name]; !ok {
			want[name] = *p.Default
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if body := len(deploy.Standalone()); body > 51_200 {
		t.Errorf("the template has %d bytes; CloudFormation takes 51200 in a request", body)
	}
}

func attribute(t *testing.T, b *hclsyntax.Body, name string, ctx *hcl.EvalContext) cty.Value {
	t.Helper()
	a := b.Attributes[name]
	if a == nil {
		t.Fatalf("there is no %s", name)
	}
	v, diags := a.Expr.Value(ctx)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return v
}

func outputValues(outputs map[string]any) map[string]cty.Value {
	all := make(map[string]cty.Value, len(outputs))
	for name := range outputs {
		all[name] = cty.StringVal(name)
	}
	return all
}

// usedOnThePage are the arguments of the module in docs/operate/deploying.md.
func usedOnThePage(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operate/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```hcl\n")
	text, _, _ = strings.Cut(text, "```\n")
	file, diags := hclsyntax.ParseConfig([]byte(text), "deploying.md", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	used := make(map[string]string)
	for _, b := range file.Body.(*hclsyntax.Body).Blocks {
		for name, a := range b.Body.Attributes {
			if name != "source" {
				used[name] = string(a.Expr.Range().SliceBytes([]byte(text)))
			}
		}
	}
	return used
}
