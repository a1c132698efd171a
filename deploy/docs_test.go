package deploy

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
