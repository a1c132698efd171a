package scaffold

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

// mine is a module that requires samekey already, so that Init has no need of a registry.
const mine = bare + "\nrequire github.com/samekey/samekey v0.0.0\nrequire example.com/zebra v0.0.0\n"

// bare is one that doesn't.
const bare = "module example.com/shop/v2\n\ngo 1.26.0\n"

// folder returns the files below dir, by their paths.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			all[filepath.ToSlash(name)+"/"] = ""
		} else {
			all[filepath.ToSlash(name)] = localtest.Read(t, path)
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
	for _, name := range want.Created {
		if files[name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	if first := memoryHead + sum(files[want.Created[0]]) + "  " + want.Created[0] + "\n"; !strings.HasPrefix(files[memoryFile], first) {
		t.Errorf("%s doesn't begin with %s: %s", memoryFile, first, files[memoryFile])
	}
	if files["go.mod"] != mine {
		t.Errorf("go.mod has become %s", files["go.mod"])
	}
	if !strings.Contains(files["samconfig.toml"], `stack_name = "shop"`) {
		t.Errorf("samconfig.toml is %s", files["samconfig.toml"])
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
	localtest.Write(t, filepath.Join(dir, "go.sum", "x"), "not looked at")
	got, err := Init(t.Context(), Options{Dir: dir})
	if diff := cmp.Diff([]string{"cmd/api/order.go", "template.yaml"}, got.LeftAlone); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
	files := folder(t, dir)
	if files["template.yaml"] != "Resources: {}\n" || files["cmd/api/order.go"] != "package main\n" {
		t.Errorf("overwritten: %v", files)
	}
}

// Ensure a folder is as it was before, after each error.
func TestInitWritesAllOrNothing(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the terminal is gone"))
	for name, tt := range map[string]struct {
		ctx    context.Context
		before map[string]string
		in     string // the folder below
		opts   Options
		want   string
	}{
		"a path that is none":       {opts: Options{Module: "my app"}, want: `"my app" is no path for a module`},
		"a folder's name is none":   {in: "my app", before: map[string]string{"my app/notes.txt": ""}, want: `"my app" is no path for a module (choose another by -module`},
		"a module has its path":     {before: map[string]string{"go.mod": mine}, opts: Options{Module: "example.com/new"}, want: "is the module example.com/shop/v2 already"},
		"inside a module":           {before: map[string]string{"go.mod": mine, "sub/notes.txt": ""}, in: "sub", want: "belongs to the module in"},
		"a file is in the way":      {before: map[string]string{"go.mod": mine, "cmd": "a file"}, want: "cmd/api: not a directory"},
		"a folder is in the way":    {before: map[string]string{"go.mod": mine, "template.yaml/x": ""}, want: "is a directory"},
		"no such version":           {opts: Options{Module: "example.com/new", Replace: "/nowhere"}, want: "/nowhere"},
		"no such version, a module": {before: map[string]string{"go.mod": bare}, opts: Options{Replace: "/nowhere"}, want: "/nowhere"},
		"a broken go.mod":           {before: map[string]string{"go.mod": "modul x\n"}, want: "go mod edit -json: exit status 1"},
		"a broken memory":           {before: map[string]string{"go.mod": mine, memoryFile: "nonsense\n"}, want: `"nonsense" is not a checksum and a path`},
		"a folder for a memory":     {before: map[string]string{"go.mod": mine, memoryFile + "/x": ""}, want: memoryFile + ": is a directory"},
		"told to end":               {ctx: cancelled, want: "the terminal is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for path, text := range tt.before {
				localtest.Write(t, filepath.Join(dir, path), text)
			}
			before := folder(t, dir)
			tt.opts.Dir = filepath.Join(dir, tt.in)
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			if _, err := Init(ctx, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "remove ") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if diff := cmp.Diff(before, folder(t, dir)); diff != "" {
				t.Errorf("left behind:\n%s", diff)
			}
		})
	}
}

func TestInitWithoutPermission(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "probe"), nil, 0o600); err == nil {
		if dir = "/proc/self"; runtime.GOOS != "linux" {
			t.Skip("this user may write everywhere")
		}
	}
	if _, err := Init(t.Context(), Options{Dir: dir, Module: "example.com/new"}); err == nil || !strings.HasPrefix(err.Error(), "open "+dir+"/go.mod: ") {
		t.Errorf("error %v", err)
	}
}

func TestInitWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	if _, err := Init(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "install Go") || len(folder(t, dir)) > 0 {
		t.Errorf("error %v, %v", err, folder(t, dir))
	}
}

func TestInitWithoutTemporaryFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", "/nowhere")
	if _, err := Init(t.Context(), Options{Dir: dir}); err == nil || !strings.HasPrefix(err.Error(), "stat /nowhere: ") {
		t.Errorf("error %v", err)
	}
}

// What a name in the folder links to, if it is nothing, is in the way.
func TestInitOverLinks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{".github": "mkdir ", memoryFile: "open ", "Makefile": "open "} {
		dir := t.TempDir()
		localtest.Write(t, filepath.Join(dir, "go.mod"), mine)
		link := filepath.Join(dir, name)
		if err := os.Symlink(filepath.Join(dir, "not", "there"), link); err != nil {
			t.Fatal(err)
		}
		if _, err := Init(t.Context(), Options{Dir: dir}); err == nil || !strings.HasPrefix(err.Error(), want+link+": ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// goOf puts a go command on the PATH that runs a script for what needs a registry: its first arguments are
// the pattern. Each is written down in the returned file. Init runs in a new folder, which is the current one.
func goOf(t *testing.T, pattern, script string) (dir, log string) {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	log = filepath.Join(bin, "log")
	localtest.Write(t, log, "")
	localtest.WriteProgram(t, filepath.Join(bin, "go"), "#!/bin/sh\ncase \"$1 $2\" in\n"+pattern+") echo \"$@\" >>'"+log+"'; "+script+" ;;\n*) exec '"+real+"' \"$@\" ;;\nesac\n")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	dir = t.TempDir()
	t.Chdir(dir)
	t.Setenv("TMPDIR", t.TempDir())
	return dir, log
}

// A new module requires the program and the worker, and nothing is left elsewhere.
func TestInitRequires(t *testing.T) {
	dir, log := goOf(t, `"get -tool"|"mod tidy"`, "echo sums >go.sum")
	got, err := Init(t.Context(), Options{Module: "example.com/shop"})
	if err != nil || got.Module != "example.com/shop" || !got.Required || len(got.Created) != 12 {
		t.Errorf("%+v, %v", got, err)
	}
	const want = "get -tool github.com/samekey/samekey/cmd/samekey@latest github.com/samekey/samekey/cmd/samekey-worker@latest\nmod tidy\n"
	if said := localtest.Read(t, log); said != want {
		t.Errorf("go is asked for %s", said)
	}
	if files := folder(t, dir); !strings.HasPrefix(files["go.mod"], "module example.com/shop\n") || files["go.sum"] != "sums\n" || len(folder(t, os.Getenv("TMPDIR"))) > 0 {
		t.Errorf("%v, %v", files, folder(t, os.Getenv("TMPDIR")))
	}
}

// What a go command that fails has left is taken back, but for what isn't Init's.
func TestInitWithAGoThatFails(t *testing.T) {
	const get = "get -tool github.com/samekey/samekey/cmd/samekey@v1.2.3 github.com/samekey/samekey/cmd/samekey-worker@v1.2.3"
	for name, tt := range map[string]struct {
		pattern, script string
		before          map[string]string
		want, log       string
		left            []string
	}{
		"a registry": {`"get -tool"|"mod tidy"`, "echo sums >go.sum; rm Makefile; echo lost >&2; exit 1", nil, "go " + get + ": exit status 1\nlost", get + "\n", nil},
		"another's":  {`"get -tool"`, "echo mine >cmd/api/mine.go; exit 1", nil, "cmd/api: directory not empty", get + "\n", []string{"cmd/", "cmd/api/", "cmd/api/mine.go"}},
		"no module":  {`"mod init"`, "true", nil, "go.mod: no such file or directory", "mod init example.com/shop\n", nil},
		"no JSON":    {`"mod edit"`, "echo nonsense", map[string]string{"go.mod": bare}, "go mod edit -json: invalid character", "mod edit -json\n", []string{"go.mod"}},
		"sums":       {`"get -tool"`, "exit 1", map[string]string{"go.mod": bare, "go.sum/x": ""}, "go.sum: is a directory", "", []string{"go.mod", "go.sum/", "go.sum/x"}},
		"no modules": {`"env GOMOD"|"mod init"`, "[ $1 = env ] || exit 1", nil, "is no path for a module", "env GOMOD\nmod init example.com/shop\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir, log := goOf(t, tt.pattern, tt.script)
			opts := Options{Module: "example.com/shop", Version: "v1.2.3"}
			for name, text := range tt.before {
				localtest.Write(t, filepath.Join(dir, name), text)
				opts.Module = ""
			}
			_, err := Init(t.Context(), opts)
			if left := slices.Sorted(maps.Keys(folder(t, dir))); err == nil || !strings.Contains(err.Error(), tt.want) || !slices.Equal(left, tt.left) {
				t.Errorf("%v is left, error %v", left, err)
			}
			if said := localtest.Read(t, log); said != tt.log {
				t.Errorf("go is asked for %s", said)
			}
		})
	}
}

func TestStackName(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"orders": "orders", "example.com/my_shop.app": "my-shop-app", "example.com/shop/v3": "shop", "example.com/3d": "app-3d", "x/---": "app", "x": "x", "A1": "A1", "0": "app-0", "9": "app-9",
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

// older makes the folder as an older version of a file would have left it.
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
	// What its owner has made of a file is nobody's business.
	localtest.Write(t, filepath.Join(dir, "cmd/api/order.go"), "package main\n")
	older(t, dir, "template.yaml", "Resources: {}\n")
	localtest.Write(t, filepath.Join(dir, memoryFile), localtest.Read(t, filepath.Join(dir, memoryFile))+"\n") // by an editor
	if err := errors.Join(os.Remove(filepath.Join(dir, "samconfig.toml")), os.Remove(filepath.Join(dir, "template.yaml"))); err != nil {
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
	// To run Init again says that this version has been seen.
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

// What can't be compared is an error, and no change.
func TestCheckNeedsAnInit(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for want, tt := range map[string]struct {
		ctx  context.Context
		name string
		text string
	}{
		"run samekey init first":                   {name: "notes.txt"},
		`"nonsense" is not a checksum and a path`:  {name: memoryFile, text: "nonsense\n"},
		`there is no example "bookshop"`:           {name: memoryFile, text: memoryExample + "bookshop\n"},
		"go mod edit -json: exit status 1":         {name: "go.mod", text: "modul x\n"},
		"context canceled":                         {ctx: ended, name: "notes.txt"},
		".github/workflows/ci.yml: is a directory": {name: ".github/workflows/ci.yml/x"},
		memoryFile + ": is a directory":            {name: memoryFile + "/x"},
	} {
		dir := t.TempDir()
		if want != "run samekey init first" {
			dir = ours(t)
			older(t, dir, ".github/workflows/ci.yml", "")
		}
		if file, is := strings.CutSuffix(tt.name, "/x"); is { // a folder in its place
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
		localtest.Write(t, filepath.Join(dir, tt.name), tt.text)
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		if changes, err := Check(ctx, dir, io.Discard); changes || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("changes: %v, error %v, want %q", changes, err, want)
		}
	}
}

// Another example has its own functions and template, and stays the folder's.
func TestInitOfAnExample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	localtest.Write(t, filepath.Join(dir, "go.mod"), mine)
	got, err := Init(t.Context(), Options{Dir: dir, Example: "checkout"})
	want := Result{Module: "example.com/shop/v2", Example: "checkout", Created: []string{
		".github/workflows/ci.yml", ".gitignore", "Makefile", "cmd/api/checkout.go", "cmd/api/checkout_test.go", "cmd/api/main.go", "cmd/api/payments.go", "cmd/api/session.go",
		"cmd/authorizer/authorize.go", "cmd/authorizer/authorize_test.go", "cmd/authorizer/main.go", "cmd/webhook/main.go", "cmd/webhook/send.go", "cmd/webhook/send_test.go",
		"samconfig.toml", "samekey.yaml", "template.yaml",
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
	if _, err := Init(t.Context(), Options{Dir: ours(t), Example: "checkout"}); err == nil || !strings.Contains(err.Error(), "has written a first handler here") {
		t.Errorf("over a first handler: %v", err)
	}
	if _, err := Init(t.Context(), Options{Dir: t.TempDir(), Module: "example.com/a", Example: "bookshop"}); err == nil || !strings.Contains(err.Error(), `no example "bookshop": it is one of checkout`) {
		t.Errorf("error %v", err)
	}
}
