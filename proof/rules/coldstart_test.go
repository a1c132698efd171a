package rules

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// Each of these packages is paid for at every cold start, by its own initialisation
// or by what is made of it there: a single regular expression took 0.7 ms.
func TestFunctionsLinkNothingSlowToStart(t *testing.T) {
	t.Parallel()
	slow := []string{"encoding/gob", "expvar", "html/template", "net/rpc", "regexp", "text/template"}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags="+functionTags(t), "-f", `{{.ImportPath}} {{join .Imports " "}}`,
		"./cmd/samekey-worker", "./examples/hello", "./examples/rides/cmd/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	ours := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if strings.HasSuffix(f[0], "/http2/hpack") {
			t.Errorf("functions link HTTP/2, 0.39 MB: the Makefile's tags must leave it out (nethttpomithttp2)")
		}
		if !strings.HasPrefix(f[0], module) {
			continue
		}
		ours++
		for _, p := range slow {
			if slices.Contains(f[1:], p) {
				t.Errorf("%s imports %s, and functions link it", f[0], p)
			}
		}
	}
	if ours < 10 {
		t.Errorf("%d packages of the module: the test looks at the wrong programs", ours)
	}
}

// What this module's packages do before main is paid for at every cold start. The bounds keep
// maps, regular expressions and tables of closures out of package variables; `go test -C proof
// ./rules -run Initialise -v` prints each package.
func TestFunctionsInitialiseLittle(t *testing.T) {
	t.Parallel()
	const mostPackages, mostAllocations, starts = 5, 28, 10
	bin := filepath.Join(t.TempDir(), "bootstrap")
	if err := lambdarun.BuildBootstrapIn(t.Context(), root, "./examples/hello", bin); err != nil {
		t.Fatal(err)
	}
	// The runtime counts the whole process: on a busy machine its own goroutines allocate meanwhile. So the
	// least of some starts is what a package does.
	least := make(map[string]int)
	for range starts {
		cmd := exec.CommandContext(t.Context(), bin)
		cmd.Env = []string{ // of no Lambda: it ends with its first request
			"GODEBUG=inittrace=1", "AWS_LAMBDA_RUNTIME_API=127.0.0.1:1", "_HANDLER=bootstrap", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s", "IDEM_TABLE=table",
		}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "127.0.0.1:1") {
			t.Fatalf("the function didn't ask for its first event: %v\n%s", err, out)
		}
		for _, m := range regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) allocs$`).FindAllStringSubmatch(string(out), -1) {
			n, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			if before, ok := least[m[1]]; strings.HasPrefix(m[1], module) && (!ok || n < before) {
				least[m[1]] = n
			}
		}
	}
	allocations := 0
	for _, name := range slices.Sorted(maps.Keys(least)) {
		allocations += least[name]
		t.Logf("%3d allocations: %s", least[name], strings.TrimPrefix(name, module))
	}
	if len(least) == 0 || len(least) > mostPackages || allocations > mostAllocations {
		t.Errorf("%d packages allocate %d times before main, want at most %d and %d", len(least), allocations, mostPackages, mostAllocations)
	}
}

// functionTags returns the build tags of the functions.
func functionTags(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^BUILDTAGS +\?= (\S+)$`).FindSubmatch(b)
	if m == nil {
		t.Fatal("the Makefile has no BUILDTAGS")
	}
	return string(m[1])
}
