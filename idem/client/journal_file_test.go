package client_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
)

// enter begins an operation and fails the test if it can't.
func enter(t *testing.T, j *client.FileJournal, name string) {
	t.Helper()
	must(t, enterErr(t, j, name))
}

func enterErr(t *testing.T, j *client.FileJournal, name string) error {
	t.Helper()
	now := time.Now()
	_, _, err := j.Begin(t.Context(), client.Entry{Operation: name, Key: "key of " + name, Created: now, Expires: now.Add(time.Hour)})
	return err
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func keysIn(j *client.FileJournal) map[string]string {
	keys := map[string]string{}
	for _, e := range j.Entries() {
		keys[e.Operation] = e.Key
	}
	return keys
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestJournalFile(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	if _, err := client.OpenJournal(path); runtime.GOOS != "windows" && !errors.Is(err, client.ErrLocked) {
		t.Errorf("second open: %v, want ErrLocked", err)
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, mode %v, want 0600", err, info.Mode())
	}

	now := time.Now()
	e := client.Entry{Operation: "o", Key: "k", Fingerprint: "f", Created: now, Expires: now.Add(time.Hour)}
	if got, found, err := j.Begin(t.Context(), e); err != nil || found || got != e {
		t.Errorf("%+v, %t, %v", got, found, err)
	}
	other := e
	other.Key, other.Fingerprint = "k2", "f2"
	if got, found, err := j.Begin(t.Context(), other); err != nil || !found || got.Key != "k" {
		t.Errorf("%+v, %t, %v", got, found, err)
	}
	if err := j.Update(t.Context(), client.Entry{Operation: "unknown", Key: "k"}); err != nil || len(j.Entries()) != 1 {
		t.Errorf("%v, %+v: an update must not make an entry", err, j.Entries())
	}
	if err := j.Update(t.Context(), other); err != nil || j.Entries()[0].Key != "k" {
		t.Errorf("%v, %+v: the entry is of another operation by now", err, j.Entries())
	}
	before := string(read(t, path))
	if err := j.Done("unknown"); err != nil || string(read(t, path)) != before {
		t.Errorf("%v: nothing is to be forgotten, nor written", err)
	}
	if _, _, err := j.Begin(t.Context(), client.Entry{Operation: "far", Key: "k", Expires: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("an entry that can't be stored was accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := j.Begin(ctx, client.Entry{Operation: "p"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}

	for range 2 {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := j.Begin(t.Context(), e); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Begin: %v", err)
	}
	if err := errors.Join(j.Update(t.Context(), e), j.Done("o")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Update, Done: %v", err)
	}
}

// A path that can't be a journal's is refused, and nothing is left there.
func TestJournalThatCantBe(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	write(t, "file", nil)
	must(t, os.Symlink("loop", "loop"))
	for path, want := range map[string]error{"file/operations": syscall.ENOTDIR, "loop": nil, "missing/operations": fs.ErrNotExist} {
		if _, err := client.OpenJournal(path); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if left, err := filepath.Glob("*"); err != nil || len(left) != 2 {
		t.Errorf("%q, %v", left, err)
	}
	if hidden, err := filepath.Glob(".*"); err != nil || len(hidden) != 0 {
		t.Errorf("%q, %v", hidden, err)
	}
}

// The operations to resume come in the order in which they were begun.
func TestEntriesAreInOrder(t *testing.T) {
	t.Parallel()
	j := open(t, journalFile(t))
	now := time.Now()
	for i, name := range []string{"c", "z", "a", "b"} {
		e := client.Entry{Operation: name, Key: "k", Created: now.Add(-time.Duration(i/2) * time.Hour), Expires: now.Add(time.Hour)}
		if _, _, err := j.Begin(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, e := range j.Entries() {
		names = append(names, e.Operation)
	}
	if got := strings.Join(names, " "); got != "a b c z" {
		t.Errorf("%s, want the oldest first", got)
	}
}

// An interrupted rewrite leaves a useless temporary file.
func TestJournalLeftovers(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	if err := os.WriteFile(path+".tmp", []byte("half a journal"), 0o644); err != nil {
		t.Fatal(err)
	}
	j := open(t, path)
	if len(j.Entries()) != 0 {
		t.Errorf("%+v", j.Entries())
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("leftover: %v", err)
	}
	if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// After any damage to the open file, a crash would lose new entries, so the journal
// accepts none, even if all seems well again.
func TestJournalIsHarmedWhileOpen(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // Windows doesn't let others harm an open file
	}
	longer := func(n int64) func(string) error {
		return func(path string) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, info.Size()+n))
		}
	}
	for name, harm := range map[string]func(path string) error{
		"deleted":          os.Remove,
		"moved away":       func(path string) error { return os.Rename(path, path+".old") },
		"emptied":          func(path string) error { return os.Truncate(path, 0) },
		"cut by a byte":    longer(-1),
		"longer by a byte": longer(1),
		"folder deleted":   func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"lock deleted":     func(path string) error { return os.Remove(path + ".lock") },
		"lock replaced": func(path string) error {
			return errors.Join(os.Remove(path+".lock"), os.WriteFile(path+".lock", nil, 0o600))
		},
		"replaced by its copy": func(path string) error {
			data, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".copy", data, 0o600), os.Rename(path+".copy", path))
		},
		"replaced by a link": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.Symlink(path+".old", path))
		},
		"another process's turn": func(path string) error {
			err := errors.Join(os.Remove(path+".lock"), os.Remove(path))
			open(t, path)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "folder", "operations")
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			j := open(t, path)
			enter(t, j, "before")
			known := j.Entries()[0]
			must(t, harm(path))
			harmed, _ := os.ReadFile(path)
			for range 2 {
				for what, err := range map[string]error{
					"Begin": enterErr(t, j, "after"), "Update": j.Update(t.Context(), known), "Done": j.Done("before"),
				} {
					if !errors.Is(err, client.ErrCorrupt) {
						t.Errorf("%s: %v, want ErrCorrupt", what, err)
					}
				}
				if name == "moved away" {
					_ = os.Rename(path+".old", path)
					harmed = read(t, path)
				}
			}
			if left, _ := os.ReadFile(path); string(left) != string(harmed) {
				t.Errorf("the harmed file was changed to %q", left)
			}
			if diff := cmp.Diff(map[string]string{"before": "key of before"}, keysIn(j)); diff != "" {
				t.Errorf("what is known (-want +got):\n%s", diff)
			}
		})
	}
}

// After any damage to the closed file, the journal opens with everything that was promised,
// or doesn't open, and tells what the damage is. Without its mark (the lock file was lost)
// most damage still differs from a crash. A file that is no journal belongs to another program.
func TestJournalIsHarmedWhileClosed(t *testing.T) {
	t.Parallel()
	type files struct{ now, early, other, mark string }
	lines := func(edit func(l []string) []string) func(*files) {
		return func(f *files) { f.now = strings.Join(edit(strings.SplitAfter(f.now, "\n")), "") }
	}
	replace := func(old, by string) func(*files) {
		return func(f *files) { f.now = strings.Replace(f.now, old, by, 1) }
	}
	const any = "journal is corrupt"
	for name, tt := range map[string]struct {
		harm     func(*files)
		want     string // in the error
		unmarked string // in the error without a mark; "" = it isn't noticed
	}{
		"emptied":                   {func(f *files) { f.now = "" }, "the file is empty", "the file is empty"},
		"an earlier copy":           {func(f *files) { f.now = f.early }, "earlier copy", ""},
		"another journal":           {func(f *files) { f.now = f.other }, "another journal", ""},
		"only its first line":       {lines(func(l []string) []string { return l[:1] }), "cut off", ""},
		"no last line":              {lines(func(l []string) []string { return l[:3] }), "cut off", ""},
		"no second line":            {lines(func(l []string) []string { return append(l[:1:1], l[2:]...) }), "line 2: ", "line 2: "},
		"lines the other way":       {lines(func(l []string) []string { return []string{l[0], l[2], l[1], l[3]} }), "line 2: ", "line 2: "},
		"a line twice":              {lines(func(l []string) []string { return []string{l[0], l[1], l[1], l[2], l[3]} }), "line 3: ", "line 3: "},
		"no last newline":           {lines(func(l []string) []string { return append(l[:3:3], strings.TrimSuffix(l[3], "\n")) }), "cut off", ""},
		"zeros for a line":          {lines(func(l []string) []string { return append(l[:3:3], strings.Repeat("\x00", len(l[3]))) }), "cut off", ""},
		"a byte changed":            {replace(`"op":"b"`, `"op":"x"`), "line 3: ", "line 3: "},
		"a line cut":                {replace(`"op":"b"`, ""), "line 3: ", "line 3: "},
		"last byte changed":         {func(f *files) { f.now = strings.TrimSuffix(f.now, "\n") + "\v" }, any, any},
		"a bad line at its end":     {func(f *files) { f.now += "bad\n" }, "line 5: ", "line 5: "},
		"another version":           {replace("operations 2", "operations 3"), "another version", "another version"},
		"no first line":             {lines(func(l []string) []string { return l[1:] }), "not a journal", "not a journal"},
		"half a first line":         {func(f *files) { f.now = f.now[:30] }, "not a journal", "not a journal"},
		"no journal":                {func(f *files) { f.now = "root:x:0:0:root:/root:/bin/sh\n" }, "not a journal", "not a journal"},
		"a changed mark":            {func(f *files) { f.mark = strings.Replace(f.mark, "0", "1", 1) }, "mark is damaged", ""},
		"a lock of somebody else's": {func(f *files) { f.mark = "4711\n" }, "no lock of a journal", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, otherPath := journalFile(t), journalFile(t)
			for _, name := range []string{"x", "y", "z"} { // a later and longer generation
				other := open(t, otherPath)
				enter(t, other, name)
				crash(t, other)
			}
			j := open(t, path)
			enter(t, j, "a")
			crash(t, j)
			f := files{early: string(read(t, path)), other: string(read(t, otherPath))}
			j = open(t, path)
			enter(t, j, "b")
			enter(t, j, "c")
			crash(t, j)
			f.now, f.mark = string(read(t, path)), string(read(t, path+".lock"))
			tt.harm(&f)
			for mark, want := range map[string]string{f.mark: tt.want, "": tt.unmarked} {
				write(t, path, []byte(f.now))
				write(t, path+".lock", []byte(mark))
				j, err := client.OpenJournal(path)
				if want == "" {
					must(t, err)
					must(t, j.Close())
					continue
				}
				if !errors.Is(err, client.ErrCorrupt) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want ErrCorrupt, %q", err, want)
				}
				if string(read(t, path)) != f.now || string(read(t, path+".lock")) != mark {
					t.Error("the files were changed: the next start would not notice")
				}
			}
		})
	}
}

// A journal that is gone isn't new. A crash in the middle of a rewrite leaves an old mark
// beside a newer file, and a lock file that was lost has none.
func TestJournalIsGone(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	enter(t, j, "a")
	crash(t, j)
	mark := read(t, path+".lock")
	j = open(t, path) // rewrites the file
	enter(t, j, "b")
	crash(t, j)
	for _, old := range [][]byte{mark, nil} {
		write(t, path+".lock", old)
		j := open(t, path)
		if diff := cmp.Diff(map[string]string{"a": "key of a", "b": "key of b"}, keysIn(j)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		crash(t, j)
	}
	must(t, os.Remove(path))
	if _, err := client.OpenJournal(path); !errors.Is(err, client.ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was made anew: %v", err)
	}
}
