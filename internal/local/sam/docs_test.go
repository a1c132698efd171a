package sam_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
