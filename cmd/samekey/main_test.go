package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/leaktest"
)

// TestMain makes the program, and a folder with a template and a function.
var samekey, stackDir string

func TestMain(m *testing.M) { os.Exit(mainOf(m)) }

func mainOf(m *testing.M) int {
	if os.Getenv(envProgram) != "" {
		_ = os.Unsetenv(envProgram)
		main()
	}
	if play := os.Getenv(envKeys); play != "" {
		return playKeys(play)
	}
	dir := os.Getenv(envBuilt)
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "samekey"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a folder of the tests
	}
	samekey, stackDir = filepath.Join(dir, "samekey"), dir
	if _, err := os.Stat(filepath.Join(dir, "world")); err != nil {
		buildAll(dir)
	}
	return dynamotest.Main(m)
}

// envBuilt names a folder for the programs of these tests, which the next run uses again.
const envBuilt = "SAMEKEY_BUILT"

// envProgram makes the test binary run as samekey, so that tests need no build of samekey.
const envProgram = "SAMEKEY_PROGRAM"

// buildAll builds the programs of these tests, world last.
func buildAll(dir string) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	script := "#!/bin/sh\n" + envProgram + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(samekey, []byte(script), 0o700); err != nil {
		panic(err)
	}
	const testdata = "../../internal/local/stack/testdata/"
	for _, to := range [][2]string{{"fn", "dist/bootstrap"}, {"world", "world"}} {
		if err := lambdarun.BuildBootstrap(context.Background(), testdata+to[0], filepath.Join(dir, to[1])); err != nil {
			panic(err)
		}
	}
}

// On a terminal, a command may overwrite its own line.
func TestTerminal(t *testing.T) {
	t.Parallel()
	file, err1 := os.Create(filepath.Join(t.TempDir(), "log"))
	device, err2 := os.Open(os.DevNull)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if isTerminal(file) || !isTerminal(device) || errors.Join(file.Close(), device.Close()) != nil || isTerminal(device) {
		t.Error("a file, or one that is closed, is no terminal; a device is one")
	}
}

// A command without parameters refuses arguments.
func TestNoArguments(t *testing.T) {
	t.Parallel()
	for name := range strings.FieldsSeq("doctor init local reference ui") {
		if code, stdout, stderr := call(t, map[string]string{"IDEM_TABLE": "records"}, name, "more"); code != 2 || stdout != "" || !strings.HasPrefix(stderr, "samekey "+name+`: unexpected argument "more"`) {
			t.Errorf("%s: code %d, %q, %q", name, code, stdout, stderr)
		}
	}
}

// call runs a command in this process.
func call(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return callWith(t, "", env, args...)
}

// callWith is call with standard input.
func callWith(t *testing.T, typed string, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), environment{
		stdin: strings.NewReader(typed), stdout: &out, stderr: &errOut, getenv: func(name string) string { return env[name] },
	}, args)
	if !slices.Contains(args, "--data") {
		// No command prints contents or keys of customers.
		if found := leaktest.Find([][]byte{out.Bytes(), errOut.Bytes()}, append(contents(), customersKey)...); len(found) != 0 {
			t.Errorf("%v prints %q", args, found)
		}
	}
	return code, out.String(), errOut.String()
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{nil, 2, "", "Usage:\n  samekey"},
		{[]string{"help"}, 0, "Usage:\n  samekey", ""},
		{[]string{"-version"}, 0, "samekey ", ""},
		{[]string{"version"}, 2, "", "unknown command version (did you mean samekey --version?)"},
		{[]string{"nonsense"}, 2, "", "unknown command nonsense"},
		{[]string{"--version"}, 0, "samekey " + version() + ", with the library " + libraryVersion() + "\n", ""},
		{[]string{"vet", "-h"}, 0, "Rules:\n", ""},
		{[]string{"vet", "-h"}, 0, "\n  keys       ", ""},
		{[]string{"help", "local"}, 0, "--process-url NAME=URL", ""},
		{[]string{"local", "-h"}, 0, "--process-url", ""},
		{[]string{"local", "-help"}, 0, "Exit codes:\n  0  ended by a signal\n  1  failed\n  2  usage error", ""},
		{[]string{"local", "--nonsense"}, 2, "", "samekey local: unknown flag: --nonsense"},
		{[]string{"local", "-nonsense"}, 2, "", "samekey local: unknown flag: --nonsense"},
		{[]string{"local", "more"}, 2, "", `unexpected argument "more"; to name a template, give --template FILE`},
		{[]string{"local", "--template", "/nowhere.yaml"}, 1, "", "samekey local: open /nowhere.yaml: "},
		{[]string{"local", "-template", "/nowhere.yaml"}, 1, "", "/nowhere.yaml"},
		{[]string{"local", "-template=/nowhere.yaml"}, 1, "", "/nowhere.yaml"},
		{[]string{"local"}, 1, "", "no template.yaml in this folder: change the folder, give --template FILE, or run samekey init"},
	} {
		code, stdout, stderr := call(t, nil, tt.args...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%v: code %d, output %q, %q", tt.args, code, stdout, stderr)
		}
		if (tt.stdout == "") != (stdout == "") {
			t.Errorf("%v: output %q", tt.args, stdout)
		}
	}
}
