package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/testkit/prove"
)

const (
	vetFixtures  = "../../internal/cli/vet/testdata/"
	vetHandlers  = vetFixtures + "handlers"
	vetEngines   = vetFixtures + "engines"
	examplesLock = "../../examples/samekey.lock"
)

// The applications that show the packages in use have no mistake that a rule knows,
// and their lock file is as they are.
func TestVetFindsNothingInTheExamples(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, nil, "vet", "-lock", examplesLock, "../../examples/...")
	if code != 0 || stdout != "" || stderr != "" {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	lock, err := os.ReadFile(examplesLock)
	if err != nil || !strings.Contains(string(lock), "charge_created") {
		t.Errorf("%s has not the phases of Rocket Rides: %v", examplesLock, err)
	}
}

func TestVetPrintsWhatItFinds(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, nil, "vet", vetFixtures+"keys")
	const want = "testdata/keys/cases.go:32:10: keys: Payments.Charge is called in an idem.Foreign without tx.Key"
	if code != 1 || !strings.Contains(stdout, want) || !strings.Contains(stderr, "samekey vet: 5 found") {
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
		{[]string{"-lock", "vet.go", "."}, 1, "vet.go is no lock file"},
	} {
		code, stdout, stderr := call(t, nil, append([]string{"vet"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stderr, tt.says) || stdout != "" {
			t.Errorf("%v: code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
}

// The handlers of a package, with their parts, wrappers and branches, and its engines, as
// the file has them that -update writes.
func TestVetWritesTheLockFile(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{vetHandlers, vetEngines} {
		golden := folder + "/samekey.lock"
		path := filepath.Join(t.TempDir(), "samekey.lock")
		code, stdout, _ := call(t, nil, "vet", "-lock", path, folder)
		if code != 1 || !strings.Contains(stdout, "there is no such file yet: write it by samekey vet --lock "+path+" --update "+folder+", and commit it") {
			t.Errorf("without a file: code %d\n%s", code, stdout)
		}
		if code, stdout, stderr := call(t, nil, "vet", "-lock", path, "-update", folder); code != 0 || stdout+stderr != "" {
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
		if code, stdout, stderr := call(t, nil, "vet", "-lock", path, folder); code != 0 || stdout+stderr != "" {
			t.Errorf("with its own file: code %d\n%s%s", code, stdout, stderr)
		}
	}
}

// A new phase in a branch that doesn't come to the old phases is survived, wherever
// it stands in the source.
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
	if code != 1 || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, "operations under way survive the changes") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
}

// A change of what a key means fails, and nothing is written.
func TestVetComparesMeanings(t *testing.T) {
	t.Parallel()
	was, err := os.ReadFile(vetEngines + "/samekey.lock")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "samekey.lock")
	old := strings.NewReplacer(`"ScopeRoute": "true"`, `"MismatchIsNew": "true"`, `"Fingerprint.CanonicalJSON": "true",`, "").Replace(string(was))
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, nil, "vet", "-lock", path, vetEngines)
	for _, want := range []string{
		`engines/engines.go:29:`, `engines.app.engines: the fingerprint of its engine is another: "Fingerprint.CanonicalJSON": retries of earlier requests are refused with 503`,
		`engines.app.engines#3: the scope of its engine is another: "MismatchIsNew", "ScopeRoute": a retry of an earlier request is a new operation`,
		`docs/start/phases.md#change-the-meaning-of-a-key`,
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it doesn't say %s", want)
		}
	}
	if now, err := os.ReadFile(path); err != nil || code != 1 || string(now) != old || t.Failed() {
		t.Errorf("code %d, %v\n%s%s", code, err, stdout, stderr)
	}
}

// A change that operations under way don't survive fails, and nothing is written.
func TestVetComparesWithTheLockFile(t *testing.T) {
	t.Parallel()
	was, err := os.ReadFile(vetHandlers + "/samekey.lock")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "samekey.lock")
	old := strings.NewReplacer(`"phase": "ordered"`, `"phase": "created"`, `"payments/tip"`, `"payments/mail"`).Replace(string(was))
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, nil, "vet", "-lock", path, vetHandlers)
	for _, want := range []string{
		`handlers/cases.go:50:`,
		`lock: github.com/samekey/samekey/internal/cli/vet/testdata/handlers.App.book: the phase "created" is now called "ordered": operations under way are refused until the old version is back`,
		`the phase "charged" asks for the key of "payments/mail" no more: under another name, or without a key, it is another call: an operation under way may make the call twice`,
		`docs/start/phases.md#keep-the-old-phases`,
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it doesn't say %s", want)
		}
	}
	if code != 1 || !strings.Contains(stderr, "3 found") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != old {
		t.Errorf("the file was written: %v\n%s", err, after)
	}
}

// The program is a tool of go vet: it answers the go command, and finds the same. A new
// program makes the go command look at all that a package imports, so make test shows it
// an example that imports little.
func TestVetAsAToolOfGoVet(t *testing.T) {
	t.Parallel()
	vet := func(pkg string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+samekey, pkg).CombinedOutput()
		return string(out), err
	}
	examples := prove.Some("../../examples/recipes", "../../examples/...")
	if out, err := vet(examples); err != nil {
		t.Errorf("%s: %v\n%s", examples, err, out)
	}
	out, err := vet(vetFixtures + "keys")
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || strings.Count(out, " keys: ") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+samekey, "-keys=false", vetFixtures+"keys").CombinedOutput(); err != nil {
		t.Errorf("without the rule: %v\n%s", err, out)
	}
}
