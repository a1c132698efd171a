package sam_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/internal/local/sam"
)

// The template that docs/use/local.md tells newcomers to begin with.
func TestTheTemplateOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/use/local.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, begun := strings.Cut(string(page), "   ```yaml\n")
	block, _, ended := strings.Cut(block, "   ```\n")
	if !begun || !ended {
		t.Fatal("there is no template in the page")
	}
	path := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll("\n"+block, "\n   ", "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	template, err := sam.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	functions, err := template.Functions()
	if err != nil || len(functions) != 1 || len(functions[0].Notes) > 0 || functions[0].Environment["IDEM_TABLE"] != "local-Table" {
		t.Errorf("functions are %+v, %v", functions, err)
	}
	apis, err := template.APIs(functions)
	if err != nil || len(apis) != 1 || apis[0].ID != "ServerlessHttpApi" || apis[0].Routes[0].Key != "POST /orders" {
		t.Errorf("APIs are %+v, %v", apis, err)
	}
	tables, err := template.Tables()
	if err != nil || len(tables) != 1 || len(template.Ignored()) > 0 {
		t.Errorf("tables are %+v, %v; left out: %v", tables, err, template.Ignored())
	}
}

// The template of docs/operate/deploying.md nests the stack, and can be run.
func TestTemplateThatNestsTheStack(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operate/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, begun := strings.Cut(string(page), "   ```yaml\n")
	block, _, ended := strings.Cut(block, "   ```\n")
	if !begun || !ended {
		t.Fatal("there is no template in the page")
	}
	block = strings.ReplaceAll("\n"+block, "\n   ", "\n")
	dir := t.TempDir()
	path := filepath.Join(dir, "template.yaml")
	for name, text := range map[string]string{path: block, filepath.Join(dir, deploy.File): deploy.Nested()} {
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
}
