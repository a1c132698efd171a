// Package rules holds the packages to who may import whom. The linter's
// depguard sees single files; this sees what really gets linked.
package rules

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/samekey/samekey/"
)

// linked has the packages that importing each package of the module links.
var linked = sync.OnceValues(func() (map[string][]string, error) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		all[f[0]] = f[1:]
	}
	return all, nil
})

// deps returns all packages that importing pkg links.
func deps(t *testing.T, pkg string) []string {
	t.Helper()
	all, err := linked()
	if err != nil {
		t.Fatal(err)
	}
	list := all[module+pkg]
	if len(list) < 20 {
		t.Fatalf("%s has %d dependencies: something is wrong with this test", pkg, len(list))
	}
	return list
}

func TestWhoMayImportWhom(t *testing.T) {
	t.Parallel()
	for pkg, rule := range map[string]struct {
		may    []string // of modules other than ours and the standard library
		mayNot []string
	}{
		"idem":         {may: []string{"github.com/dunglas/httpsfv"}, mayNot: []string{module + "dynamo", module + "lambda"}},
		"idem/store":   {may: []string{"github.com/dunglas/httpsfv"}, mayNot: []string{module + "dynamo", module + "lambda"}},
		"idem/jobs":    {may: []string{"github.com/dunglas/httpsfv"}, mayNot: []string{module + "dynamo", module + "lambda"}},
		"idem/webhook": {may: []string{"github.com/dunglas/httpsfv"}, mayNot: []string{module + "dynamo", module + "lambda"}},
		"seal":         {mayNot: []string{module + "idem", module + "dynamo", module + "lambda", module + "internal"}},
		// A program with a store and no background function links no aws-lambda-go.
		"dynamo": {
			may:    []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "github.com/dunglas/httpsfv"},
			mayNot: []string{module + "lambda", module + "internal/background/stream", "github.com/aws/aws-sdk-go-v2/config"},
		},
		"internal/background/stream": {
			may:    []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "github.com/dunglas/httpsfv", "github.com/aws/aws-lambda-go/events"},
			mayNot: []string{module + "lambda", "github.com/aws/aws-sdk-go-v2/config"},
		},
		"internal/background/sink": {
			may:    []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "github.com/aws/aws-lambda-go", "github.com/dunglas/httpsfv"},
			mayNot: []string{module + "dynamo"},
		},
		"internal/background/completer": {
			may:    []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "github.com/aws/aws-lambda-go", "github.com/dunglas/httpsfv"},
			mayNot: []string{module + "dynamo"},
		},
		// They join both sides. A function that counts links no client of a queue. The program of
		// the worker links everything but the SDK's config.
		"lambda/worker": {
			may:    []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "github.com/aws/aws-lambda-go", "github.com/dunglas/httpsfv"},
			mayNot: []string{"github.com/aws/aws-sdk-go-v2/config"},
		},
		"internal/background/worker": {
			may:    []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "github.com/aws/aws-lambda-go", "github.com/dunglas/httpsfv"},
			mayNot: []string{module + "internal/background/sink", "github.com/aws/aws-sdk-go-v2/config"},
		},
		"lambda/metrics": {
			may:    []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "github.com/aws/aws-lambda-go/events", "github.com/dunglas/httpsfv"},
			mayNot: []string{module + "internal/background/sink", module + "internal/background/completer", "github.com/aws/aws-sdk-go-v2/config"},
		},
		"lambda": {
			may:    []string{"github.com/aws/aws-lambda-go", "github.com/dunglas/httpsfv"},
			mayNot: []string{module + "dynamo"},
		},
	} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			for _, dep := range deps(t, pkg) {
				host, _, _ := strings.Cut(dep, "/")
				foreign := strings.Contains(host, ".") && !strings.HasPrefix(dep, module)
				if foreign && !under(dep, rule.may) {
					t.Errorf("%s links %s", pkg, dep)
				}
				if under(dep, rule.mayNot) {
					t.Errorf("%s must not link %s", pkg, dep)
				}
			}
		})
	}
}

// A function's client reads the environment only. The SDK's config, which also
// reads files and asks services, is for the command, which is another module.
func TestNothingLinksTheConfigModule(t *testing.T) {
	t.Parallel()
	all, err := linked()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for pkg, deps := range all {
		if slices.Contains(deps, "github.com/aws/aws-sdk-go-v2/config") {
			got = append(got, pkg)
		}
	}
	if len(got) > 0 {
		t.Errorf("%v link the SDK's config, want none", got)
	}
}

// Test helpers must not reach a user's binary.
func TestBinariesLinkNoTestHelpers(t *testing.T) {
	t.Parallel()
	for _, dep := range deps(t, "examples/hello") {
		if dep == "testing" || under(dep, []string{module + "idem/idemtest", module + "dynamo/dynamotest", module + "lambda/lambdatest", "github.com/google/go-cmp"}) {
			t.Errorf("the example's binary links %s", dep)
		}
	}
}

func under(pkg string, prefixes []string) bool {
	for _, p := range prefixes {
		if pkg == p || strings.HasPrefix(pkg, p+"/") {
			return true
		}
	}
	return false
}
