package ridestest_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/internal/local/sam/ridestest"
)

const root = "../../../.."

// Each main finds in its environment what it can't do without, and the template
// sets nothing that no main reads.
func TestFunctionsGetTheSettingsTheyRead(t *testing.T) {
	t.Parallel()
	read := regexp.MustCompile(`env\.(\w+)\("(\w+)"`)
	var names []string
	for _, f := range ridestest.Functions(t, filepath.Join(root, "template.yaml")) {
		names = append(names, f.ID)
		if f.ID == "Samekey.Worker" {
			if app := f.Environment["SAMEKEY_APP"]; app != rides.MetricsApp {
				t.Errorf("the alarms are on App %s, and the functions write %s", app, rides.MetricsApp)
			}
			if want := "github.com/samekey/samekey/cmd/samekey-worker"; f.Source.Package != want {
				t.Errorf("%s is built from %s, want %s", f.ID, f.Source.Package, want)
			}
			continue // it refuses what it doesn't read, or misses
		}
		src, err := os.ReadFile(filepath.Join(root, "examples", "rides", "cmd", strings.ToLower(f.ID), "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		var reads []string
		for _, m := range read.FindAllStringSubmatch(string(src), -1) {
			kind, name := m[1], m[2]
			reads = append(reads, name)
			if kind == "Text" && f.Environment[name] == "" {
				t.Errorf("%s reads %s, which the template doesn't set", f.ID, name)
			}
		}
		for name := range maps.Keys(f.Environment) {
			if !slices.Contains(reads, name) {
				t.Errorf("%s is given %s, which it doesn't read", f.ID, name)
			}
		}
		if want := filepath.Join("dist", strings.ToLower(f.ID), "bootstrap"); !strings.HasSuffix(f.Bootstrap, want) {
			t.Errorf("%s is %s, want %s", f.ID, f.Bootstrap, want)
		}
	}
	slices.Sort(names)
	if want := []string{"Authorizer", "Receipts", "Rides", "Samekey.Worker"}; !slices.Equal(names, want) {
		t.Errorf("functions %v, want %v", names, want)
	}
}
