package pages_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The reader of docs/start/testing.md finds the bug with the output that the
// page shows, and the page's change mends it.
func TestCrashGuide(t *testing.T) {
	t.Parallel()
	page := pages(t)["docs/start/testing.md"]
	change := regexp.MustCompile("(?s)```diff\n-(.*?)\n\\+(.*?)\n```").FindStringSubmatch(page)
	if change == nil {
		t.Fatal("the page has no change of a line")
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("testdata", "crash", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	order, test := read("order.go"), read("order_test.go")
	if out := goTest(t, order, test); steady(out) != read("output.txt") {
		t.Errorf("with the bug go test says:\n%s\nand the page:\n%s", steady(out), read("output.txt"))
	}
	if strings.Count(order, change[1]) != 1 {
		t.Fatalf("order.go has not once the line %q", change[1])
	}
	mended := strings.Replace(strings.Replace(order, change[1], change[2], 1), "\t\"crypto/rand\"\n", "", 1)
	if out := goTest(t, mended, test); out != "PASS\n" {
		t.Errorf("after the change go test says:\n%s", out)
	}
}

// goTest builds and runs the tests of two files, as a package of this module.
func goTest(t *testing.T, order, test string) string {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := make(map[string]string)
	for name, source := range map[string]string{"order.go": order, "order_test.go": test} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, "orders", name)] = file
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "orders.test")
	// -vet and the test itself would need the package's folder.
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o="+program, "-overlay="+overlay, "./orders").CombinedOutput(); err != nil {
		return string(out)
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	return string(out)
}

// steady is the failures of go test, without times and line numbers.
func steady(out string) string {
	out = regexp.MustCompile(`(?m)^(--- FAIL: \w+) \(.*\)$`).ReplaceAllString(out, "$1")
	out = regexp.MustCompile(`_test\.go:\d+:`).ReplaceAllString(out, "_test.go:")
	failures, _, _ := strings.Cut(out, "FAIL\n")
	return failures
}
