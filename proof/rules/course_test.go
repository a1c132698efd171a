package rules

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A plain POST that is new: how many functions of this module it runs through, in
// how many files. The bound keeps the course short enough to read; `go test
// -C proof ./rules -run Course -v` prints it.
func TestCourseOfAPlainPOST(t *testing.T) {
	t.Parallel()
	const mostFunctions, mostFiles = 110, 35 // two of them look for the sign of a retry
	dir := t.TempDir()
	run := func(env []string, name string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(cmd.Environ(), env...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
		}
		return out
	}
	bin := filepath.Join(dir, "course")
	run(nil, "go", "build", "-cover", "-covermode=atomic", "-coverpkg=./testdata/course,"+module+"idem/...,"+module+"lambda/...,"+module+"internal/...", "-o", bin, "./testdata/course")
	out := run([]string{"GOCOVERDIR=" + dir}, bin)
	var answer struct{ StatusCode int }
	if err := json.Unmarshal(out, &answer); err != nil || answer.StatusCode != 201 {
		t.Fatalf("the POST was answered with %s", out)
	}
	files := map[string][]string{} // functions that ran, by file
	total := 0
	lines := bufio.NewScanner(bytes.NewReader(run(nil, "go", "tool", "covdata", "func", "-i="+dir)))
	for lines.Scan() {
		f := strings.Fields(lines.Text()) // file:line: function share
		if len(f) != 3 || f[2] == "0.0%" || !strings.HasPrefix(f[0], module) || strings.Contains(f[0], "/testdata/") {
			continue
		}
		file, _, _ := strings.Cut(strings.TrimPrefix(f[0], module), ":")
		files[file] = append(files[file], f[1])
		total++
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	folders := map[string]int{}
	for _, name := range names {
		t.Logf("%-28s %s", name, strings.Join(files[name], " "))
		folders[path.Dir(name)] += len(files[name])
	}
	t.Logf("%d functions in %d files; by package: %v", total, len(files), folders)
	if total < 20 || total > mostFunctions || len(files) > mostFiles {
		t.Errorf("a plain POST runs through %d functions in %d files, want at most %d in %d", total, len(files), mostFunctions, mostFiles)
	}
}
