package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const root = "../../.."

var update = flag.Bool("update", false, "write LICENCES.md anew")

// Each module that is linked has a licence on the list, and the page has them all.
func TestLicences(t *testing.T) {
	t.Parallel()
	modules, err := linked(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 10 {
		t.Fatalf("%d modules: something is wrong with this test", len(modules))
	}
	for _, want := range []string{"github.com/aws/aws-sdk-go-v2/service/kms", "go.opentelemetry.io/otel", "github.com/spf13/cobra"} {
		if !slices.ContainsFunc(modules, func(m module) bool { return m.Path == want }) {
			t.Errorf("%s is missing, which a module that users import links", want)
		}
	}
	table, err := licenceTable(modules)
	if err != nil {
		t.Error(err)
	}
	const page = root + "/LICENCES.md"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(raw), "| module |")
	if !found {
		t.Fatalf("%s has no table", page)
	}
	if want := head + table; want != string(raw) {
		if !*update {
			t.Errorf("%s is out of date: go test . -update\n%s", page, table)
		} else if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Error(err)
		}
	}
}

func TestLicencesThatAreRefused(t *testing.T) {
	t.Parallel()
	mit, gpl := textOf(t, "MIT.t1"), textOf(t, "GPL-2.0.t1")
	for name, tt := range map[string]struct {
		files map[string]string
		want  string // of the licence, or "!" and of the error
	}{
		"MIT":                    {map[string]string{"LICENSE": mit}, "MIT"},
		"none":                   {map[string]string{"README": mit}, "!no licence file"},
		"unknown":                {map[string]string{"LICENSE": "All rights reserved. Ask Jane before use."}, "!0 %"},
		"copyleft beside MIT":    {map[string]string{"LICENSE": mit, "LICENSE-GPL": gpl}, "!not allowed"},
		"a clause more than MIT": {map[string]string{"LICENSE": mit + strings.Repeat("\nThe Software shall be used on Tuesdays only, and a fee is due.", 30)}, "!known licence"},
	} {
		dir := t.TempDir()
		for file, text := range tt.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := licenceOf(dir)
		text, wantErr := strings.CutPrefix(tt.want, "!")
		if wantErr != (err != nil) || !wantErr && got != text || wantErr && !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tt.want)
		}
	}
}

// textOf returns the text of a licence, which the licence checker brings for its tests.
func textOf(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(folderOf(t, "github.com/google/licensecheck"), "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(raw), "\n\n") // the expected result comes first
	if !found {
		t.Fatalf("%s has no text", file)
	}
	return text
}

func folderOf(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// The bill of a binary fits CycloneDX's schema and names the binary's modules; equal
// binaries have equal bills.
func TestBillOfMaterials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "hello", "bootstrap")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "./examples/hello")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var bills [2][]byte
	for i := range bills {
		var log bytes.Buffer
		if err := run([]string{"sbom", "-o", dir, binary}, &log); err != nil {
			t.Fatal(err)
		}
		var err error
		if bills[i], err = os.ReadFile(filepath.Join(dir, "hello.cdx.json")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(bills[0], bills[1]) {
		t.Error("two bills of one binary differ")
	}
	for _, part := range []string{
		"pkg:golang/github.com/aws/aws-lambda-go@v", "pkg:golang/std@", `"Apache-2.0"`, `"h1:`, `"SHA-256"`, "-trimpath=true", `"specVersion": "1.6"`,
	} {
		if !bytes.Contains(bills[0], []byte(part)) {
			t.Errorf("the bill has no %s:\n%s", part, bills[0])
		}
	}
	if err := valid(t, bills[0]); err != nil {
		t.Error(err)
	}
	program := filepath.Join(dir, "samekey-keys")
	build = exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/samekey-keys")
	build.Dir = root + "/kms"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := run([]string{"sbom", "-o", dir, program}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if bill, err := os.ReadFile(program + ".cdx.json"); err != nil || !bytes.Contains(bill, []byte(`"pkg:golang/github.com/samekey/samekey@`)) || bytes.Contains(bill, []byte("golang/..")) {
		t.Errorf("the bill of a program of a nested module doesn't name the root module (%v)", err)
	}
	if err := valid(t, bytes.Replace(bills[0], []byte(`"type": "library"`), []byte(`"type": "potion"`), 1)); err == nil {
		t.Error("a bill with a component of an unknown type is taken for valid")
	}
}

// valid compares a bill with the schema that the CycloneDX library brings.
func valid(t *testing.T, bill []byte) error {
	t.Helper()
	schemas := filepath.Join(folderOf(t, "github.com/CycloneDX/cyclonedx-go"), "schema")
	c := jsonschema.NewCompiler()
	for url, file := range map[string]string{
		"http://cyclonedx.org/schema/bom-1.6.schema.json": "bom-1.6.schema.json", "http://cyclonedx.org/schema/spdx.schema.json": "spdx.schema.json",
		"http://cyclonedx.org/schema/jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		f, err := os.Open(filepath.Join(schemas, file))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(url, doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(bill))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc)
}

// repository is a module with a tag.
func repository(t *testing.T, tags ...string) (dir string, write func(file, text string)) {
	t.Helper()
	dir = t.TempDir()
	write = func(file, text string) {
		t.Helper()
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/m\n\ngo 1.26.0\n")
	write("a/a.go", "package a\n\nfunc Kept() int { return 1 }\n\nfunc Gone() {}\n")
	write("internal/i/i.go", "package i\n\nfunc Gone() {}\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "First"}} {
		if _, err := git(dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, tag := range tags {
		if _, err := git(dir, "tag", tag); err != nil {
			t.Fatal(err)
		}
	}
	return dir, write
}

func TestAPI(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tags   []string
		change func(write func(file, text string))
		strict bool
		want   string
		fails  bool
	}{
		"no tag":          {nil, func(func(string, string)) {}, true, "no tag yet", false},
		"a function more": {[]string{"v1.0.0"}, func(w func(string, string)) { w("a/b.go", "package a\n\nfunc New() {}\n") }, true, "compatible: New: added", false},
		"a function less": {[]string{"v1.0.0", "v0.9.0"}, func(w func(string, string)) { w("a/a.go", "package a\n\nfunc Kept() int { return 1 }\n") }, false, "INCOMPATIBLE: Gone: removed", true},
		"before 1.0":      {[]string{"v0.1.0"}, func(w func(string, string)) { w("a/a.go", "package a\n\nfunc Kept() int { return 1 }\n") }, false, "a minor one", false},
		"another result": {[]string{"v1.0.0"}, func(w func(string, string)) {
			w("a/a.go", "package a\n\nfunc Kept() string { return \"\" }\n\nfunc Gone() {}\n")
		}, false, "INCOMPATIBLE: Kept", true},
	} {
		dir, write := repository(t, tt.tags...)
		tt.change(write)
		var out bytes.Buffer
		err := compareAPI(&out, dir, tt.strict)
		if errors.Is(err, errIncompatible) != tt.fails || (err != nil) != tt.fails {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(out.String(), tt.want) || tt.want == "" && out.Len() > 0 {
			t.Errorf("%s: it prints %q, want %q", name, out.String(), tt.want)
		}
	}
}
