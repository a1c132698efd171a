package main

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

const (
	vetFixtures = "./internal/vet/testdata/"
	vetHandlers = vetFixtures + "handlers"
	vetEngines  = vetFixtures + "engines"
)

func TestVetPrintsWhatItFinds(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, nil, "vet", vetFixtures+"names", vetFixtures+"keys", vetFixtures+"effects")
	const want = "testdata/keys/cases.go:32:10: keys: Payments.Charge is called in an idem.Foreign without tx.Key"
	var places []string
	for _, m := range regexp.MustCompile(`(?m)^(\S+\.go):(\d+):(\d+): `).FindAllStringSubmatch(stdout, -1) {
		places = append(places, fmt.Sprintf("%s %5s %5s", m[1], m[2], m[3]))
	}
	if code != 1 || !strings.Contains(stdout, want) || !slices.IsSorted(places) || !strings.Contains(stderr, ": hint: ") || hintless(stderr) != fmt.Sprintf("samekey vet: %d findings; docs/use/vet.md explains the rules\n", len(places)) {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
}

func TestVetRefusesWrongCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-update"}, 2, "--update needs --lock"},
		{[]string{"-no-such-flag"}, 2, "unknown flag: --no-such-flag"},
		{[]string{"./no/such/folder"}, 1, "no/such/folder"},
		{[]string{"./testdata/..."}, 1, "samekey vet: no packages match ./testdata/...\n"},
		{[]string{"-lock", "/nowhere/samekey.lock", "-update", vetEngines}, 1, "/nowhere/samekey.lock"},
		{[]string{"-lock", "vet.go", "."}, 1, "vet.go is not a lock file"},
	} {
		code, stdout, stderr := call(t, nil, append([]string{"vet"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stderr, tt.says) || stdout != "" {
			t.Errorf("%v: code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
}

// hintless returns the notes of the command without its hints, which are not findings.
func hintless(stderr string) string {
	var b strings.Builder
	for line := range strings.Lines(stderr) {
		if !strings.Contains(line, ": hint: ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

const oneFound = "samekey vet: 1 findings; docs/use/vet.md explains the rules\n"

// --update leaves packages that were not loaded unchanged in the file,
// and removes packages that no longer exist.
func TestVetKeepsOtherPackages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "samekey.lock")
	vet := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := call(t, nil, append([]string{"vet", "-lock", path}, args...)...)
		if code != want {
			t.Errorf("%v: code %d, %s%s", args, code, stdout, stderr)
		}
		return stdout
	}
	vet(0, "-update", vetHandlers, vetEngines)
	both := localtest.Read(t, path)
	for _, tt := range []struct{ gone, looked, says string }{
		{"testdata/handlers", vetEngines, "testdata/nowhere.App.book: the handler is removed, with its phases "},
		{"testdata/engines", vetHandlers, "Open operations survive these changes"},
	} {
		localtest.Write(t, path, both)
		if out := vet(0, tt.looked); out != "" {
			t.Errorf("%s stays: %s", tt.gone, out)
		}
		localtest.Write(t, path, strings.ReplaceAll(both, tt.gone, "testdata/nowhere"))
		if out := vet(1, tt.looked); !strings.Contains(out, tt.says) {
			t.Errorf("%s is gone: %s", tt.gone, out)
		}
		vet(0, "-update", tt.looked)
		if diff := cmp.Diff(localtest.Read(t, tt.looked+"/samekey.lock"), localtest.Read(t, path)); diff != "" {
			t.Errorf("%s is gone (-want +got):\n%s", tt.gone, diff)
		}
	}
}

// A package that doesn't compile still exists: its engines and handlers stay in the file.
func TestVetKeepsBrokenPackages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "samekey.lock")
	if code, _, stderr := call(t, nil, "vet", "-lock", path, "-update", vetHandlers, vetEngines); code != 0 {
		t.Fatal(stderr)
	}
	both := strings.ReplaceAll(localtest.Read(t, path), "cmd/samekey/internal/vet/testdata/engines", "cmd/samekey/testdata/broken")
	localtest.Write(t, path, both)
	if code, stdout, stderr := call(t, nil, "vet", "-lock", path, vetHandlers); code != 0 || stdout != "" {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
}

// A file below the current folder is named relative to it. Without
// arguments, vet examines all packages below the folder.
func TestVetFromHere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samekey.lock")
	t.Chdir(vetEngines)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{filepath.Join(here, "x", "y.go"): filepath.Join("x", "y.go"), filepath.Join(here, "..", "y.go"): filepath.Join(here, "..", "y.go"), "y.go": "y.go"} {
		if got := fromHere(token.Position{Filename: name}).Filename; got != want {
			t.Errorf("%s is named %s", name, got)
		}
	}
	if _, stdout, stderr := call(t, nil, "vet", "-lock", file); !strings.HasSuffix(stdout, "--update ./..., and commit the file\n") {
		t.Errorf("%s%s", stdout, stderr)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := loadPackages(ended, "", []string{"."}); err == nil || strings.Contains(err.Error(), "no packages match") {
		t.Error(err)
	}
}

// --update writes the handlers of a package, with their parts, wrappers
// and branches, and its engines.
func TestVetWritesTheLockFile(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{vetHandlers, vetEngines} {
		golden := folder + "/samekey.lock"
		path := filepath.Join(t.TempDir(), "samekey.lock")
		code, stdout, stderr := call(t, nil, "vet", "-lock", path, folder)
		if code != 1 || hintless(stderr) != oneFound || !strings.Contains(stdout, "the file does not exist: run samekey vet --lock "+path+" --update "+folder+", and commit the file") {
			t.Errorf("without a file: code %d\n%s", code, stdout)
		}
		if code, stdout, stderr := call(t, nil, "vet", "-lock", path, "-update", folder); code != 0 || stdout+hintless(stderr) != "" {
			t.Fatalf("code %d\n%s%s", code, stdout, stderr)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("samekey vet -lock %s -update %s (-want +got):\n%s", golden, folder, diff)
		}
		if code, stdout, stderr := call(t, nil, "vet", "-lock", path, folder); code != 0 || stdout+hintless(stderr) != "" {
			t.Errorf("with its own file: code %d\n%s%s", code, stdout, stderr)
		}
	}
}

// Operations survive a new phase in a branch that doesn't lead to the
// old phases, wherever the branch is in the source.
func TestVetKnowsBranches(t *testing.T) {
	t.Parallel()
	was, err := os.ReadFile(vetHandlers + "/samekey.lock")
	if err != nil {
		t.Fatal(err)
	}
	const isNew = `        {
          "phase": "new",
          "kind": "Atomic",
          "result": "int"
        },
`
	path := filepath.Join(t.TempDir(), "samekey.lock")
	old := strings.Replace(string(was), isNew, "", 1)
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil || len(old) == len(was) {
		t.Fatalf("%s is another file: %v", vetHandlers, err)
	}
	code, stdout, stderr := call(t, nil, "vet", "-lock", path, vetHandlers)
	if code != 1 || hintless(stderr) != oneFound || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, "Open operations survive these changes") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
}

// A change of what a key means fails, and --update then writes nothing.
func TestVetComparesMeanings(t *testing.T) {
	t.Parallel()
	was, err := os.ReadFile(vetEngines + "/samekey.lock")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "samekey.lock")
	old := strings.NewReplacer(`"Scope": "source de70114c"`, `"OneScope": "true"`, `"Fingerprint.CanonicalJSON": "true",`, "").Replace(string(was))
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, nil, "vet", "-lock", path, vetEngines)
	for _, want := range []string{
		`engines/engines.go:29:`, `engines.app.engines: the fingerprint of the engine has changed: "Fingerprint.CanonicalJSON": retries of earlier requests are refused with 503`,
		`engines.app.engines#3: the scope of the engine has changed: "OneScope", "Scope": a retry of an earlier request runs as a new operation`,
		`docs/operate/changes.md#change-the-meaning-of-a-key`,
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it doesn't say %s", want)
		}
	}
	if now, err := os.ReadFile(path); err != nil || code != 1 || string(now) != old || t.Failed() {
		t.Errorf("code %d, %v\n%s%s", code, err, stdout, stderr)
	}
}

// A change that open operations don't survive fails, and --update then writes nothing.
func TestVetComparesWithTheLockFile(t *testing.T) {
	was, err := os.ReadFile(vetHandlers + "/samekey.lock")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "samekey.lock")
	old := strings.NewReplacer(`"phase": "ordered"`, `"phase": "created"`, `"payments/tip"`, `"payments/mail"`).Replace(string(was))
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(vetFixtures)
	code, stdout, stderr := call(t, nil, "vet", "-lock", path, "./handlers")
	if !strings.HasPrefix(stdout, "handlers/cases.go:50:") {
		t.Error("it begins with another place")
	}
	for _, want := range []string{
		`lock: github.com/samekey/samekey/cmd/samekey/internal/vet/testdata/handlers.App.book: the phase "created" is now called "ordered": open operations may be blocked until the old version is back`,
		`the phase "charged" no longer calls tx.Key for "payments/mail"; without the derived key, the provider treats a repeated call as a new call: an open operation may make the call twice`,
		`docs/operate/changes.md#keep-the-old-phases`,
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it doesn't say %s", want)
		}
	}
	if code != 1 || !strings.Contains(stderr, "3 findings") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != old {
		t.Errorf("the file was written: %v\n%s", err, after)
	}
}

// The program works as a tool of go vet: it answers the go command and has the same findings.
func TestVetAsAToolOfGoVet(t *testing.T) {
	t.Parallel()
	vet := func(pkg string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+samekey, pkg).CombinedOutput()
		return string(out), err
	}
	out, err := vet(vetFixtures + "keys")
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || strings.Count(out, " keys: ") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+samekey, "-keys=false", vetFixtures+"keys").CombinedOutput(); err != nil {
		t.Errorf("without the rule: %v\n%s", err, out)
	}
}

// The go command asks the tool for its version and flags, and then passes a file.
func TestVetToolAnswers(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"-V=full": " version ", "-flags": `"Name": "keys"`, "nowhere.cfg": "nowhere.cfg: no such file", "": "Usage:\n  samekey\n"} {
		if out, _ := exec.CommandContext(t.Context(), samekey, strings.Fields(args)...).CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("samekey %s: %s", args, out)
		}
	}
}
