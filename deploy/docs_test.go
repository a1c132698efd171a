package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/internal/local/sam"
)

func page(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../docs/operate/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The page lists the parameters as the template has them.
func TestPageListsTheParameters(t *testing.T) {
	t.Parallel()
	var parsed struct {
		Parameters yaml.Node `yaml:"Parameters"`
	}
	if err := yaml.Unmarshal([]byte(Nested()), &parsed); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := 0; i < len(parsed.Parameters.Content); i += 2 {
		var p struct {
			Description string `yaml:"Description"`
			Default     string `yaml:"Default"`
		}
		if err := parsed.Parameters.Content[i+1].Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.Default != "" {
			p.Default = "`" + p.Default + "` "
		}
		fmt.Fprintf(&want, "| `%s` | %s| %s |\n", parsed.Parameters.Content[i].Value, p.Default, p.Description)
	}
	if !strings.Contains(page(t), "| --- | --- | --- |\n"+want.String()+"\n") {
		t.Errorf("docs/operate/deploying.md doesn't have the table\n%s", want.String())
	}
}

// The page explains each statement of the policies.
func TestPageExplainsThePermissions(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(page(t), "\n## Permissions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	count := func(text, pattern string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return names
	}
	explained, there := count(section, "(?m)^\\|[^|]*\\| `(\\w+)` \\|"), count(Nested(), `- Sid: (\w+)`)
	there = slices.DeleteFunc(there, func(sid string) bool { return sid == "EncryptedTransportOnly" }) // of the bucket
	if len(there) < 9 || !slices.Equal(explained, there) {
		t.Errorf("the page explains %v, the template has %v", explained, there)
	}
}

// The page's template nests the stack: it can be run, at most 25 lines are for the
// stack, and the function has one policy for it.
func TestTemplateOfThePage(t *testing.T) {
	t.Parallel()
	_, block, begun := strings.Cut(page(t), "   ```yaml\n")
	block, _, ended := strings.Cut(block, "   ```\n")
	if !begun || !ended {
		t.Fatal("there is no template in the page")
	}
	block = strings.ReplaceAll("\n"+block, "\n   ", "\n")
	dir := t.TempDir()
	path := filepath.Join(dir, "template.yaml")
	for name, text := range map[string]string{path: block, filepath.Join(dir, File): Nested()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	template, err := sam.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	template.Set("Receipts", "", "https://receipts")
	template.Set("Samekey.Tickets", "", "https://tickets")
	template.Set("Samekey.Table", "StreamArn", "stream:Samekey.Table")
	functions, err := template.Functions()
	if err != nil || len(functions) != 2 || len(functions[0].Notes)+len(functions[1].Notes) > 0 {
		t.Fatalf("functions are %+v, %v", functions, err)
	}
	if ignored := template.Ignored(); len(ignored) > 0 {
		t.Errorf("left out: %v", ignored)
	}
	orders, worker := functions[0], functions[1]
	if orders.Environment["IDEM_TABLE"] != worker.Environment["IDEM_TABLE"] || worker.Environment["SAMEKEY_FUNCTIONS"] != orders.ARN {
		t.Errorf("the function has %v, the worker %v; the function is %s", orders.Environment, worker.Environment, orders.ARN)
	}
	if app := worker.Environment["SAMEKEY_APP"]; app == "" || app != orders.Environment["SAMEKEY_APP"] {
		t.Errorf("the function writes its metrics as %q, the alarms are on %q", orders.Environment["SAMEKEY_APP"], app)
	}
	if len(worker.Events) != 4 || worker.Async.Retries != 0 {
		t.Errorf("the worker's events are %+v, with %d retries", worker.Events, worker.Async.Retries)
	}
	_, nested, _ := strings.Cut(block, "\n  Samekey:\n")
	nested, rest, _ := strings.Cut(nested, "\n\n")
	lines := 2 + strings.Count(nested, "\n") + strings.Count(rest, "Samekey.Outputs") + strings.Count(rest, "FunctionName:")
	if lines > 25 || strings.Count(rest, "Policies: [!GetAtt Samekey.Outputs.FunctionPolicyArn]") != 1 {
		t.Errorf("%d lines are for the stack", lines)
	}
	t.Logf("%d lines are for the stack", lines)
}
