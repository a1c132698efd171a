package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// app is a template that nests the stack, as far as these tests look at it.
type app struct {
	Parameters map[string]struct {
		Default string `yaml:"Default"`
	} `yaml:"Parameters"`
	Globals struct {
		Function struct {
			LoggingConfig struct {
				LogGroup string `yaml:"LogGroup"`
			} `yaml:"LoggingConfig"`
			Environment variables `yaml:"Environment"`
		} `yaml:"Function"`
		HTTPAPI routes `yaml:"HttpApi"`
	} `yaml:"Globals"`
	Resources map[string]struct {
		Type       string `yaml:"Type"`
		Properties struct {
			Parameters  map[string]yaml.Node `yaml:"Parameters"`
			Retention   int                  `yaml:"RetentionInDays"`
			LogGroup    yaml.Node            `yaml:"LogGroupName"`
			Environment variables            `yaml:"Environment"`
			routes      `yaml:",inline"`
		} `yaml:"Properties"`
	} `yaml:"Resources"`
}

type variables struct {
	Variables map[string]yaml.Node `yaml:"Variables"`
}

type routes struct {
	Settings struct {
		Rate  int `yaml:"ThrottlingRateLimit"`
		Burst int `yaml:"ThrottlingBurstLimit"`
	} `yaml:"DefaultRouteSettings"`
}

// The first application of a user, and the examples that he reads, have limits, logs that end
// and a name of their own, and a first deployment that may fail.
func TestApplicationsHaveSafeDefaults(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"../cmd/samekey/internal/scaffold/files/template.yaml", "../examples/shop/template.yaml", "../examples/checkout/template.yaml"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var a app
		if err := yaml.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		nested := a.Resources["Samekey"].Properties.Parameters
		if p := a.Parameters["DeletionProtection"]; p.Default != "false" || nested["DeletionProtection"].Value != "DeletionProtection" {
			t.Errorf("%s: DeletionProtection is %q, and the stack gets %q", path, p.Default, nested["DeletionProtection"].Value)
		}
		if got := nested["App"]; got.Tag != "!Ref" || got.Value != "AWS::StackName" {
			t.Errorf("%s: App is %s %s: applications with one name silence each other's alarms", path, got.Tag, got.Value)
		}
		named := a.Globals.Function.Environment.Variables["SAMEKEY_APP"].Value == nested["App"].Value
		limits := a.Globals.HTTPAPI.Settings
		for _, r := range a.Resources {
			if r.Type == "AWS::Serverless::HttpApi" {
				limits = r.Properties.Settings
			}
			named = named || r.Properties.Environment.Variables["SAMEKEY_APP"].Value == nested["App"].Value
		}
		if limits.Rate == 0 || limits.Burst == 0 {
			t.Errorf("%s: the API has the limits %+v", path, limits)
		}
		group := a.Resources[a.Globals.Function.LoggingConfig.LogGroup]
		if group.Type != "AWS::Logs::LogGroup" || group.Properties.Retention == 0 {
			t.Errorf("%s: the functions' logs go to %+v", path, group)
		}
		if !named {
			t.Errorf("%s: no function has the name in SAMEKEY_APP", path)
		}
	}
}

// Whoever deploys an application names the tokens of its callers: one that the template has is
// everybody's.
func TestApplicationsHaveNoTokens(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"../cmd/samekey/internal/scaffold/files/template.yaml", "../examples/checkout/template.yaml"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var a struct {
			Parameters map[string]struct {
				Default        *string `yaml:"Default"`
				NoEcho         bool    `yaml:"NoEcho"`
				AllowedPattern string  `yaml:"AllowedPattern"`
			} `yaml:"Parameters"`
		}
		if err := yaml.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		p := a.Parameters["Tokens"]
		if p.Default != nil || !p.NoEcho {
			t.Errorf("%s: Tokens has a default, or shows it", path)
		}
		allowed := regexp.MustCompile("^(?:" + p.AllowedPattern + ")$")
		const long = "0123456789abcdef012345"
		for value, want := range map[string]bool{
			"": false, "jane:tea": false, "jane:" + long[1:]: false, long: false, "jane:" + long + " omar:milk": false,
			"jane:" + long: true, "jane:" + long + " omar:" + long: true,
		} {
			if allowed.MatchString(value) != want {
				t.Errorf("%s: Tokens %q is allowed: %t", path, value, !want)
			}
		}
	}
}

// CloudFormation refuses aliases of YAML, which SAM takes.
func TestTemplatesHaveNoAliases(t *testing.T) {
	t.Parallel()
	var aliases func(n *yaml.Node) int
	aliases = func(n *yaml.Node) (all int) {
		if n.Kind == yaml.AliasNode || n.Anchor != "" {
			all = 1
		}
		for _, c := range n.Content {
			all += aliases(c)
		}
		return all
	}
	for _, path := range templates {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var n yaml.Node
		if err := yaml.Unmarshal(raw, &n); err != nil || len(n.Content) == 0 || aliases(&n) > 0 {
			t.Errorf("%s: %d aliases and anchors, %v", path, aliases(&n), err)
		}
	}
}

var templates = []string{
	"samekey.yaml", "../template.yaml", "../examples/hello/template.yaml", "../examples/shop/template.yaml", "../cmd/samekey/internal/scaffold/files/template.yaml",
}

// A log group of a function has no name that another deployment would ask for: lines that
// come after the stack is gone make the group again, and the next deployment would fail.
// The gateway makes no group, and asks for a name.
func TestLateLinesBlockNoDeployment(t *testing.T) {
	t.Parallel()
	groups := 0
	for _, path := range templates {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var a app
		if err := yaml.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		for id, r := range a.Resources {
			if r.Type != "AWS::Logs::LogGroup" {
				continue
			}
			groups++
			if name := r.Properties.LogGroup.Value; name != "" && !strings.HasPrefix(name, "/aws/vendedlogs/") {
				t.Errorf("%s: %s has the name %s", path, id, name)
			}
		}
	}
	if groups < 5 {
		t.Errorf("%d log groups are in the templates", groups)
	}
}
