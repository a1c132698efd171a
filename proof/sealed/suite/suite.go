// Package suite is in the programs of `make sealed` only: it encrypts every store that
// has no sealer, and notes the contents of records and the lines of logs.
package suite

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/seal"
)

// The variables of a run.
const (
	EnvDir   = "SAMEKEY_SUITE_DIR"   // where contents and logs go
	EnvPlain = "SAMEKEY_SUITE_PLAIN" // set: nothing is encrypted, for control
)

// The beginnings of the names of files in EnvDir. Each line of the former is a content
// in base64.
const (
	FileContents = "contents-"
	FileLog      = "log-"
)

// Sealer returns the sealer of a store whose own is given, which may be nil: its own, or
// the suite's. In a control run there is none.
func Sealer(own *seal.Sealer) *seal.Sealer {
	switch {
	case os.Getenv(EnvPlain) != "":
		return nil
	case own != nil:
		return own
	}
	return sealer()
}

var sealer = sync.OnceValue(func() *seal.Sealer {
	provider, err := seal.NewStatic("suite", map[string][]byte{"suite": make([]byte, 32)})
	if err != nil {
		panic(err) //nolint:forbidigo // a mistake in the program
	}
	return seal.New(provider)
})

// file is this process's with this beginning, whose lines are written whole.
func file(begin string) func() *os.File {
	return sync.OnceValue(func() *os.File {
		name := filepath.Join(os.Getenv(EnvDir), fmt.Sprint(begin, os.Getpid()))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the run's folder
		if err != nil {
			panic(err) //nolint:forbidigo // a check that notes nothing must not pass
		}
		return f
	})
}

var contents, logs = file(FileContents), file(FileLog)

// Written notes the contents of a record that is about to be written.
func Written(r *store.Record) {
	plain := make([]string, 0, 6+len(r.Phases)+3*len(r.Jobs))
	plain = append(plain, r.Route, r.Handler.Function, r.Handler.Name, r.Tenant, r.ID, r.Owner)
	for _, p := range r.Phases {
		plain = append(plain, p.Name)
	}
	for name, j := range r.Jobs {
		plain = append(plain, name, j.Kind, j.Group)
	}
	note := func(texts ...string) {
		for _, text := range texts {
			// A test may use one text as a content and as a name, which is plain.
			if trimmed := strings.Trim(text, `"`); len(trimmed) >= 8 && !strings.Contains(strings.Join(plain, "\n"), trimmed) {
				_, _ = fmt.Fprintln(contents(), base64.StdEncoding.EncodeToString([]byte(text)))
			}
		}
	}
	note(r.Scope)
	for _, p := range r.Phases {
		note(string(p.Result))
	}
	for _, j := range r.Jobs {
		note(string(j.Args))
	}
	if in := r.Input; in != nil {
		note(in.Path, in.Query, in.Identity.Subject, string(in.Body), string(in.Snapshot))
		for _, values := range in.Header {
			note(values...)
		}
	}
	if re := r.Response; re != nil {
		note(string(re.Body))
		for _, values := range re.Header {
			note(values...)
		}
	}
}

// Log returns a logger that writes each line of every level to EnvDir too.
func Log(l *slog.Logger) *slog.Logger {
	return slog.New(tee{l.Handler(), slog.NewJSONHandler(logs(), &slog.HandlerOptions{Level: slog.LevelDebug})})
}

type tee struct{ to, also slog.Handler }

func (t tee) Enabled(context.Context, slog.Level) bool { return true }

func (t tee) Handle(ctx context.Context, r slog.Record) error {
	_ = t.also.Handle(ctx, r)
	if !t.to.Enabled(ctx, r.Level) {
		return nil
	}
	return t.to.Handle(ctx, r)
}

func (t tee) WithAttrs(as []slog.Attr) slog.Handler {
	return tee{t.to.WithAttrs(as), t.also.WithAttrs(as)}
}
func (t tee) WithGroup(g string) slog.Handler { return tee{t.to.WithGroup(g), t.also.WithGroup(g)} }
