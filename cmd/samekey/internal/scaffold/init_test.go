package scaffold

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// mine is a module with all requirements of Init's files, so that Init asks no registry.
const mine = "module example.com/shop/v2\n\ngo 1.26.0\n\ntool (\n\tgithub.com/samekey/samekey/cmd/samekey\n\tgithub.com/samekey/samekey/cmd/samekey-worker\n)\n\n" +
	"require github.com/samekey/samekey v0.0.0\n\nrequire example.com/other v1.0.0\n"

// link begins the text of a file that is a symbolic link.
const link = "-> "

// fill writes files into a folder, by path.
func fill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if to, ok := strings.CutPrefix(text, link); ok {
			if err := os.Symlink(to, filepath.Join(dir, path)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		localtest.Write(t, filepath.Join(dir, path), text)
	}
}

// folder returns the files below dir, by path.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch name = filepath.ToSlash(name); {
		case d.IsDir():
			all[name+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			to, _ := os.Readlink(path)
			all[name] = link + to
		default:
			all[name] = localtest.Read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ours returns a folder in which Init has run.
func ours(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	localtest.Write(t, filepath.Join(dir, "go.mod"), mine)
	if _, err := Init(t.Context(), Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestInitWritesEveryFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	localtest.Write(t, filepath.Join(dir, "go.mod"), mine)
	got, err := Init(t.Context(), Options{Dir: dir})
	want := Result{Module: "example.com/shop/v2", Created: []string{
		".github/workflows/ci.yml", ".gitignore", "Makefile", "cmd/api/main.go", "cmd/api/order.go", "cmd/api/order_test.go",
		"cmd/authorizer/authorize.go", "cmd/authorizer/authorize_test.go", "cmd/authorizer/main.go", "samconfig.toml", "samekey.yaml", "template.yaml",
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v; -want +got:\n%s", err, diff)
	}
	files := folder(t, dir)
	expected := map[string]string{"go.mod": mine, "samekey.yaml": deploy.Nested(), ".github/": "", ".github/workflows/": "", "cmd/": "", "cmd/api/": "", "cmd/authorizer/": ""}
	memory := "# Checksums of the files that samekey init wrote. samekey init --check reads them.\n"
	for _, name := range want.Created {
		if expected[name] == "" {
			from := "files"
			if strings.HasPrefix(name, "cmd/authorizer/") {
				from = "../../../../examples/checkout"
			}
			expected[name] = strings.ReplaceAll(localtest.Read(t, filepath.Join(from, name)), "samekey-app", "shop")
		}
		memory += sum(expected[name]) + "  " + name + "\n"
	}
	expected[".samekey-init"] = memory
	if diff := cmp.Diff(expected, files); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	again, err := Init(t.Context(), Options{Dir: dir})
	if diff := cmp.Diff(Result{Module: want.Module, Unchanged: want.Created}, again); err != nil || diff != "" {
		t.Errorf("the second time: %v; -want +got:\n%s", err, diff)
	}
	if diff := cmp.Diff(files, folder(t, dir)); diff != "" {
		t.Errorf("the second time changed:\n%s", diff)
	}
}

func TestInitOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	localtest.Write(t, filepath.Join(dir, "go.mod"), mine)
	localtest.Write(t, filepath.Join(dir, "template.yaml"), "Resources: {}\n")
	localtest.Write(t, filepath.Join(dir, "cmd/api/order.go"), "package main\n")
	localtest.Write(t, filepath.Join(dir, "go.sum/x"), "nobody looks at it where the module requires samekey")
	got, err := Init(t.Context(), Options{Dir: dir})
	if diff := cmp.Diff([]string{"cmd/api/order.go", "template.yaml"}, got.LeftAlone); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
	files := folder(t, dir)
	if files["template.yaml"] != "Resources: {}\n" || files["cmd/api/order.go"] != "package main\n" {
		t.Errorf("overwritten: %v", files)
	}
}

// After an error, the folder is as before.
func TestInitWritesAllOrNothing(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for name, tt := range map[string]struct {
		ctx    context.Context
		before map[string]string
		in     string // a folder below dir, to run Init in
		opts   Options
		want   string
	}{
		"a path that is none":    {opts: Options{Module: "my app"}, want: `"my app" is not a module path; give a path`},
		"a module has its path":  {before: map[string]string{"go.mod": mine}, opts: Options{Module: "example.com/new"}, want: "is already the module example.com/shop/v2"},
		"inside a module":        {before: map[string]string{"go.mod": mine, "sub/notes.txt": ""}, in: "sub", want: "belongs to the module in"},
		"a file is in the way":   {before: map[string]string{"go.mod": mine, "cmd": "a file"}, want: filepath.FromSlash("cmd/api: not a directory")},
		"a link is in the way":   {before: map[string]string{"go.mod": mine, "cmd": link + "nowhere"}, want: "cmd: file exists"},
		"a broken memory":        {before: map[string]string{"go.mod": mine, memoryFile: "nonsense\n"}, want: `"nonsense" is not a checksum`},
		"a folder is in the way": {before: map[string]string{"go.mod": mine, "template.yaml/x": ""}, want: "is a directory"},
		"no such version":        {opts: Options{Module: "example.com/new", Version: "none of it"}, want: "none of it"},
		"told to end":            {ctx: cancelled, want: "enough"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fill(t, dir, tt.before)
			before := folder(t, dir)
			tt.opts.Dir = filepath.Join(dir, tt.in)
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			if _, err := Init(ctx, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if diff := cmp.Diff(before, folder(t, dir)); diff != "" {
				t.Errorf("left behind:\n%s", diff)
			}
		})
	}
}

func TestInitWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	if _, err := Init(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "install Go") || len(folder(t, dir)) > 0 {
		t.Errorf("error %v, %v", err, folder(t, dir))
	}
}

// Init handles each call and error of the go command; a script stands in for the command.
func TestInitByGo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the go command that notes its calls is a shell script")
	}
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	const (
		module = "module example.com/mine\n\ngo 1.26.0\n"
		look   = "env GOMOD\n"
		edit   = look + "mod edit -json\n"
		get    = "get -tool github.com/samekey/samekey/cmd/samekey-worker@VERSION\n"
		list   = `list -mod=mod -m -f {{.Path}} {{with .Time}}{{.Format "2006-01-02"}}{{end}} github.com/aws/aws-sdk-go-v2/service/...` + "\n"
		fails  = "echo no >&2; exit 1"
	)
	getting := func(version string) string { return strings.ReplaceAll(get, "VERSION", version) }
	there := map[string]string{"go.mod": module}
	for name, tt := range map[string]struct {
		before map[string]string
		opts   Options
		at, do string // at is a call of the go command, and do is what the script then does
		want   string // part of the error
		asked  string // all calls of the go command, if there is no error
		left   []string
	}{
		"a module":               {before: there, asked: edit + getting("latest") + "mod tidy\n"},
		"a new one":              {opts: Options{Version: "v1.2.3"}, asked: look + "mod init mine\n" + getting("v1.2.3") + "mod tidy\n"},
		"a library":              {before: map[string]string{"go.mod": module + "\nrequire github.com/samekey/samekey v1.0.0\n"}, asked: edit + "mod edit -tool=github.com/samekey/samekey/cmd/samekey-worker\nmod tidy\n"},
		"no JSON":                {before: there, at: "mod edit -json", do: "echo no; exit", want: "go mod edit -json: invalid character .*"},
		"no version":             {before: there, at: "get *", do: fails, want: "go get .*: exit status 1\nno"},
		"not tidy":               {before: there, at: "mod tidy", do: "echo x >go.sum; echo x >>go.mod; " + fails, want: "go mod tidy: exit status 1\nno"},
		"it can't be taken back": {before: there, at: "mod tidy", do: "touch cmd/api/x; " + fails, want: "go mod tidy: exit status 1\nno\nremove cmd/api: directory not empty\nremove cmd: directory not empty", left: []string{"cmd/", "cmd/api/", "cmd/api/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			bin, tmp, dir := t.TempDir(), filepath.Join(t.TempDir(), "tmp"), filepath.Join(t.TempDir(), "mine")
			if err := errors.Join(os.Mkdir(tmp, 0o700), os.Mkdir(dir, 0o700)); err != nil {
				t.Fatal(err)
			}
			localtest.WriteProgram(t, filepath.Join(bin, "go"), "#!/bin/sh\n"+
				"echo \"$*\" >>"+bin+"/asked\n"+
				"case \"-$*\" in "+strings.ReplaceAll("-"+tt.at, " ", "\\ ")+") "+tt.do+"\n;; esac\n"+
				"case \"$*\" in get\\ *|mod\\ tidy|mod\\ edit\\ *-require*|list\\ *) exit;; esac\n"+
				"exec "+real+" \"$@\"\n")
			t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			t.Setenv("TMPDIR", tmp)
			t.Chdir(dir)
			fill(t, dir, tt.before)
			before := folder(t, dir)
			got, err := Init(t.Context(), tt.opts)
			if rest, _ := os.ReadDir(tmp); len(rest) > 0 {
				t.Errorf("left behind are %v", rest)
			}
			if tt.want != "" {
				for _, name := range tt.left {
					before[name] = ""
				}
				if diff := cmp.Diff(before, folder(t, dir)); diff != "" || err == nil || !regexp.MustCompile("^"+tt.want+"$").MatchString(err.Error()) {
					t.Errorf("%v\n%s", err, diff)
				}
				return
			}
			want := Result{Module: "mine", Required: true, Created: got.Created}
			if tt.before != nil {
				want.Module = "example.com/mine"
			}
			if diff := cmp.Diff(want, got) + cmp.Diff(tt.asked+list, localtest.Read(t, filepath.Join(bin, "asked"))); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// A module that uses the library, directly or through another module,
// gets the requirements of Init's files.
func TestInitWhereSamekeyIsRequired(t *testing.T) {
	t.Parallel()
	checkout, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	const head, use = "module example.com/NAME\n\ngo 1.26.0\n", "\n\nimport \"github.com/samekey/samekey/idem\"\n\nvar New = idem.New\n"
	gomod := func(name, more string) string {
		return strings.Replace(head, "NAME", name, 1) + "\nrequire github.com/samekey/samekey v0.0.0\n\nreplace github.com/samekey/samekey => " + checkout + "\n" + more
	}
	for by, before := range map[string]map[string]string{
		"another module": {
			"go.mod": gomod("shop", "\nrequire example.com/dep v0.0.0\n\nreplace example.com/dep => ./dep\n"), "use.go": "package shop\n\nimport _ \"example.com/dep\"\n",
			"dep/go.mod": gomod("dep", ""), "dep/use.go": "package dep" + use,
		},
		"an application with an old SDK": {
			"go.mod": gomod("shop", "\nrequire github.com/aws/aws-sdk-go-v2/service/ses v1.16.0\n"),
			"use.go": "package shop\n\nimport (\n\t_ \"github.com/aws/aws-sdk-go-v2/service/ses\"\n\t_ \"github.com/samekey/samekey/idem\"\n)\n",
		},
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fill(t, dir, before)
			run := func(args ...string) {
				if _, err := goCommand(t.Context(), dir, args...); err != nil {
					t.Fatal(err)
				}
			}
			run("mod", "tidy")
			got, err := Init(t.Context(), Options{Dir: dir})
			if err != nil || !got.Required {
				t.Fatalf("%+v, %v; want go.mod completed", got, err)
			}
			var old []string
			if strings.Contains(before["go.mod"], "service/ses") {
				old = []string{"github.com/aws/aws-sdk-go-v2/service/ses"}
			}
			if diff := cmp.Diff(old, got.Old); diff != "" {
				t.Errorf("modules to raise (-want +got):\n%s", diff)
			}
			run("list", "-deps", "./cmd/...", worker)
		})
	}
}

func TestStackName(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"orders": "orders", "example.com/my_shop.app": "my-shop-app", "example.com/shop/v3": "shop", "example.com/3d": "app-3d", "x/---": "app",
	} {
		if got := stackName(module); got != want {
			t.Errorf("%s: %s, want %s", module, got, want)
		}
	}
}

func check(t *testing.T, dir string) (bool, string) {
	t.Helper()
	var out bytes.Buffer
	changes, err := Check(t.Context(), dir, &out)
	if err != nil {
		t.Fatal(err)
	}
	if changes != (out.Len() > 0) {
		t.Errorf("changes: %v, with %q", changes, out.String())
	}
	return changes, out.String()
}

// older makes a file of the folder as an older version of Init would have written it.
func older(t *testing.T, dir, name, text string) {
	t.Helper()
	memory := filepath.Join(dir, memoryFile)
	was := sum(localtest.Read(t, filepath.Join(dir, name)))
	localtest.Write(t, filepath.Join(dir, name), text)
	localtest.Write(t, memory, strings.Replace(localtest.Read(t, memory), was, sum(text), 1))
}

func TestCheckShowsWhatANewerVersionChanges(t *testing.T) {
	t.Parallel()
	dir := ours(t)
	if changes, diff := check(t, dir); changes {
		t.Errorf("nothing has changed: %s", diff)
	}
	// Check ignores files that their owner has changed or removed.
	older(t, dir, ".gitignore", "/dist/\n")
	if err := os.Remove(filepath.Join(dir, ".gitignore")); err != nil {
		t.Fatal(err)
	}
	localtest.Write(t, filepath.Join(dir, memoryFile), localtest.Read(t, filepath.Join(dir, memoryFile))+"\n")
	localtest.Write(t, filepath.Join(dir, "cmd/api/order.go"), "package main\n")
	if err := os.Remove(filepath.Join(dir, "samconfig.toml")); err != nil {
		t.Fatal(err)
	}
	if changes, diff := check(t, dir); changes {
		t.Errorf("the version is the same: %s", diff)
	}

	want := localtest.Read(t, filepath.Join(dir, "Makefile"))
	older(t, dir, "Makefile", strings.Replace(want, "go vet ./...", "go vet .", 1))
	changes, diff := check(t, dir)
	if !changes || !strings.Contains(diff, "-\tgo vet .\n+\tgo vet ./...\n") || strings.Contains(diff, "You have changed") || strings.Contains(diff, "order.go") {
		t.Errorf("the diff is %s", diff)
	}
	apply := exec.CommandContext(t.Context(), "git", "apply", "-")
	apply.Dir, apply.Stdin = dir, strings.NewReader(diff)
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v: %s", err, out)
	}
	if got := localtest.Read(t, filepath.Join(dir, "Makefile")); got != want {
		t.Errorf("git apply makes %s", got)
	}
	if changes, diff := check(t, dir); changes {
		t.Errorf("the diff is taken: %s", diff)
	}
}

func TestCheckTellsWhatItsOwnerHasChanged(t *testing.T) {
	t.Parallel()
	dir := ours(t)
	older(t, dir, "Makefile", "all:\n")
	localtest.Write(t, filepath.Join(dir, "Makefile"), "all: mine\n")
	if _, diff := check(t, dir); !strings.HasPrefix(diff, "# You have changed Makefile") || !strings.Contains(diff, "-all: mine\n") {
		t.Errorf("the diff is %s", diff)
	}
	// Another run of Init records that the owner has seen this version.
	if _, err := Init(t.Context(), Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if changes, diff := check(t, dir); changes || localtest.Read(t, filepath.Join(dir, "Makefile")) != "all: mine\n" {
		t.Errorf("the version was seen: %s", diff)
	}
}

func TestCheckShowsNewFiles(t *testing.T) {
	t.Parallel()
	dir := ours(t)
	memory := filepath.Join(dir, memoryFile)
	var kept []string
	for _, line := range strings.SplitAfter(localtest.Read(t, memory), "\n") {
		if !strings.HasSuffix(line, "  .gitignore\n") {
			kept = append(kept, line)
		}
	}
	localtest.Write(t, memory, strings.Join(kept, ""))
	if err := os.Remove(filepath.Join(dir, ".gitignore")); err != nil {
		t.Fatal(err)
	}
	if _, diff := check(t, dir); !strings.HasPrefix(diff, "--- /dev/null\n+++ b/.gitignore\n") || !strings.Contains(diff, "+/dist/\n") {
		t.Errorf("the diff is %s", diff)
	}
}

func TestCheckNeedsAnInit(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]map[string]string{
		"run samekey init first":                  {},
		`"nonsense" is not a checksum and a path`: {memoryFile: "nonsense\n"},
		`unknown example "bookshop"`:              {memoryFile: "# example: bookshop\n"},
	} {
		dir := t.TempDir()
		localtest.Write(t, filepath.Join(dir, "go.mod"), mine)
		fill(t, dir, files)
		if changes, err := Check(t.Context(), dir, io.Discard); changes || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, changes, err)
		}
	}
}

// An example has its own functions and template, and the folder keeps the example.
func TestInitOfAnExample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	localtest.Write(t, filepath.Join(dir, "go.mod"), mine)
	got, err := Init(t.Context(), Options{Dir: dir, Example: "checkout"})
	want := Result{Module: "example.com/shop/v2", Example: "checkout", Created: []string{
		".github/workflows/ci.yml", ".gitignore", "Makefile", "cmd/api/checkout.go", "cmd/api/checkout_test.go", "cmd/api/main.go", "cmd/api/payments.go",
		"cmd/api/session.go", "cmd/authorizer/authorize.go", "cmd/authorizer/authorize_test.go", "cmd/authorizer/main.go", "cmd/webhook/main.go",
		"cmd/webhook/send.go", "cmd/webhook/send_test.go", "samconfig.toml", "samekey.yaml", "template.yaml",
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v; -want +got:\n%s", err, diff)
	}
	files := folder(t, dir)
	for _, name := range []string{"cmd/api/checkout.go", "cmd/api/checkout_test.go", "cmd/webhook/send.go", "cmd/authorizer/main.go", "samekey.yaml", "template.yaml", "Makefile"} {
		if files[name] == "" || strings.Contains(files[name], "../..") {
			t.Errorf("%s: %.200s", name, files[name])
		}
	}
	if files["cmd/api/order.go"] != "" || !strings.Contains(files["Makefile"], "-o dist/webhook/bootstrap ./cmd/webhook\n") || !strings.Contains(files["template.yaml"], "GoPackage: ./cmd/authorizer") {
		t.Errorf("the first handler's files are mixed in: %v", got.Created)
	}
	if changes, diff := check(t, dir); changes {
		t.Errorf("--check: %s", diff)
	}
	for _, example := range []string{"", "checkout"} {
		if again, err := Init(t.Context(), Options{Dir: dir, Example: example}); err != nil || len(again.Created) > 0 || again.Example != "checkout" {
			t.Errorf("again: %+v, %v", again, err)
		}
	}
	if _, err := Init(t.Context(), Options{Dir: ours(t), Example: "checkout"}); err == nil || !strings.Contains(err.Error(), "has already written a first handler here") {
		t.Errorf("over a first handler: %v", err)
	}
	if _, err := Init(t.Context(), Options{Dir: t.TempDir(), Module: "example.com/a", Example: "bookshop"}); err == nil || !strings.Contains(err.Error(), `unknown example "bookshop": give one of checkout`) {
		t.Errorf("error %v", err)
	}
}
