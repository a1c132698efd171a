package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The library can't import the module of the proofs: for a run, package suite stands in
// the library's own, too.
const (
	suiteFolder  = "internal/sealedsuite"
	suitePackage = "github.com/samekey/samekey/" + suiteFolder
)

// changes are the snippets that a run replaces. Each is once in its file.
var changes = []struct{ file, old, new string }{
	{"dynamo/store.go", "sealer: opt.Seal,", "sealer: suite.Sealer(opt.Seal),"},
	{"dynamo/claim.go", "func (s *Store) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {\n", "$suite.Written(c.Next)\n"},
	{"dynamo/commit.go", "func (s *Store) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {\n", "$suite.Written(c.Next)\n"},
	{"idem/memory.go", "func (m *MemoryStore) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {\n", "$suite.Written(c.Next)\n"},
	{"idem/memory.go", "func (m *MemoryStore) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {\n", "$suite.Written(c.Next)\n"},
	{"idem/options.go", "		o.Logger = slog.Default()\n	}\n", "$o.Logger = suite.Log(o.Logger)\n"},
	{"internal/background/stream/drain.go", "cmp.Or(opt.Logger, slog.Default())", "suite.Log(cmp.Or(opt.Logger, slog.Default()))"},
	{"internal/background/stream/sweep.go", "cmp.Or(opt.Logger, slog.Default())", "suite.Log(cmp.Or(opt.Logger, slog.Default()))"},
	{"internal/background/stream/completer.go", "cmp.Or(opt.Logger, slog.Default())", "suite.Log(cmp.Or(opt.Logger, slog.Default()))"},
	{"idem/log.go", "		logger = slog.Default()\n	}\n", "$logger = suite.Log(logger)\n"},
	{"internal/background/stream/log.go", "		logger = slog.Default()\n	}\n", "$logger = suite.Log(logger)\n"},
	{"idem/webhook/handler.go", "		opt.Logger = slog.Default()\n	}\n", "$opt.Logger = suite.Log(opt.Logger)\n"},
	{"internal/background/completer/handler.go", "		opt.Logger = slog.Default()\n	}\n", "$opt.Logger = suite.Log(opt.Logger)\n"},
}

// changed writes the changed files to dir, and returns the file that tells the compiler
// of them. A new text with $ before it follows the old one.
func changed(root, dir string) (overlay string, err error) {
	texts := make(map[string]string)
	for _, c := range changes {
		text := texts[c.file]
		if text == "" {
			raw, err := os.ReadFile(filepath.Join(root, c.file))
			if err != nil {
				return "", err
			}
			text = strings.Replace(string(raw), "import (\n", "import (\n\tsuite \""+suitePackage+"\"\n", 1)
		}
		if n := strings.Count(text, c.old); n != 1 {
			return "", fmt.Errorf("%s has %d times %q: adapt the table of changes", c.file, n, c.old)
		}
		more, follows := strings.CutPrefix(c.new, "$")
		if follows {
			more = c.old + more
		}
		texts[c.file] = strings.Replace(text, c.old, more, 1)
	}
	replace := make(map[string]string)
	for file, text := range texts {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = to
	}
	suite, err := filepath.Glob(filepath.Join(root, "proof", "sealed", "suite", "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range suite {
		replace[filepath.Join(root, filepath.FromSlash(suiteFolder), filepath.Base(file))] = file
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, raw, 0o600)
}
