package client_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
)

// enter begins an operation and fails the test if it can't.
func enter(t *testing.T, j *client.FileJournal, name string) {
	t.Helper()
	if _, _, err := enterErr(t, j, name); err != nil {
		t.Fatal(err)
	}
}

func enterErr(t *testing.T, j *client.FileJournal, name string) (client.Entry, bool, error) {
	t.Helper()
	now := time.Now()
	return j.Begin(t.Context(), client.Entry{Operation: name, Key: "key of " + name, Created: now, Expires: now.Add(time.Hour)})
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

// After any damage to the open file, a crash would lose new entries, so the
// journal accepts none.
func TestJournalIsHarmedWhileOpen(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // Windows doesn't let others harm an open file
	}
	for name, harm := range map[string]func(t *testing.T, path string){
		"deleted":          func(t *testing.T, path string) { t.Helper(); must(t, os.Remove(path)) },
		"moved away":       func(t *testing.T, path string) { t.Helper(); must(t, os.Rename(path, path+".old")) },
		"emptied":          func(t *testing.T, path string) { t.Helper(); must(t, os.Truncate(path, 0)) },
		"cut by a byte":    func(t *testing.T, path string) { t.Helper(); must(t, os.Truncate(path, int64(len(read(t, path))-1))) },
		"longer by a byte": func(t *testing.T, path string) { t.Helper(); must(t, os.Truncate(path, int64(len(read(t, path))+1))) },
		"folder deleted":   func(t *testing.T, path string) { t.Helper(); must(t, os.RemoveAll(filepath.Dir(path))) },
		"folder moved away": func(t *testing.T, path string) {
			t.Helper()
			must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".old"))
		},
		"lock deleted": func(t *testing.T, path string) { t.Helper(); must(t, os.Remove(path+".lock")) },
		"lock replaced": func(t *testing.T, path string) {
			t.Helper()
			must(t, os.Remove(path+".lock"))
			write(t, path+".lock", nil)
		},
		"replaced by its copy": replaceByCopy,
		"replaced by a link": func(t *testing.T, path string) {
			t.Helper()
			must(t, os.Rename(path, path+".old"))
			must(t, os.Symlink(path+".old", path))
		},
		"another process's turn": func(t *testing.T, path string) {
			t.Helper()
			must(t, os.Remove(path+".lock"))
			must(t, os.Remove(path))
			open(t, path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "folder", "operations")
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			j := open(t, path)
			enter(t, j, "before")
			known := j.Entries()[0]
			harm(t, path)
			harmed, _ := os.ReadFile(path)
			for range 2 {
				if _, _, err := enterErr(t, j, "after"); !errors.Is(err, client.ErrCorrupt) {
					t.Errorf("Begin: %v, want ErrCorrupt", err)
				}
				if err := j.Update(t.Context(), known); !errors.Is(err, client.ErrCorrupt) {
					t.Errorf("Update: %v, want ErrCorrupt", err)
				}
				if err := j.Done("before"); !errors.Is(err, client.ErrCorrupt) {
					t.Errorf("Done: %v, want ErrCorrupt", err)
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

// A journal that was harmed is to be opened again, even if all seems well by now.
func TestHarmedJournalStaysHarmed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // as above
	}
	path := journalFile(t)
	j := open(t, path)
	must(t, os.Rename(path, path+".old"))
	if _, _, err := enterErr(t, j, "a"); !errors.Is(err, client.ErrCorrupt) {
		t.Errorf("moved away: %v, want ErrCorrupt", err)
	}
	must(t, os.Rename(path+".old", path))
	if _, _, err := enterErr(t, j, "a"); !errors.Is(err, client.ErrCorrupt) {
		t.Errorf("and back: %v, want ErrCorrupt", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func replaceByCopy(t *testing.T, path string) {
	t.Helper()
	write(t, path+".copy", read(t, path))
	must(t, os.Rename(path+".copy", path))
}

// After any damage to the closed file, the journal opens with everything that was
// promised, or doesn't open.
func TestJournalIsHarmedWhileClosed(t *testing.T) {
	t.Parallel()
	type files struct{ path, early, other string }
	lines := func(edit func(l []string) []string) func(*testing.T, files) {
		return func(t *testing.T, f files) {
			t.Helper()
			write(t, f.path, []byte(strings.Join(edit(strings.SplitAfter(string(read(t, f.path)), "\n")), "")))
		}
	}
	for name, harm := range map[string]func(t *testing.T, f files){
		"deleted":                  func(t *testing.T, f files) { t.Helper(); must(t, os.Remove(f.path)) },
		"emptied":                  func(t *testing.T, f files) { t.Helper(); write(t, f.path, nil) },
		"an earlier copy put back": func(t *testing.T, f files) { t.Helper(); write(t, f.path, read(t, f.early)) },
		"a copy of version 1": func(t *testing.T, f files) {
			t.Helper()
			write(t, f.path, []byte("samekey operations 1\n"+withSum(oldLine("a"))))
		},
		"another journal in its place": func(t *testing.T, f files) { t.Helper(); write(t, f.path, read(t, f.other)) },
		"only its first line":          lines(func(l []string) []string { return l[:1] }),
		"without its last line":        lines(func(l []string) []string { return l[:3] }), // SplitAfter adds an empty last line
		"without its second line":      lines(func(l []string) []string { return append(l[:1:1], l[2:]...) }),
		"two lines the other way":      lines(func(l []string) []string { return []string{l[0], l[2], l[1], l[3]} }),
		"a line twice":                 lines(func(l []string) []string { return []string{l[0], l[1], l[1], l[2], l[3]} }),
		"a line without its newline":   lines(func(l []string) []string { return append(l[:3:3], strings.TrimSuffix(l[3], "\n")) }),
		"zeros for its last line":      lines(func(l []string) []string { return append(l[:3:3], strings.Repeat("\x00", len(l[3]))) }),
		"the lock's mark changed": func(t *testing.T, f files) {
			t.Helper()
			mark := read(t, f.path+".lock")
			mark[len(mark)/2] ^= 1
			write(t, f.path+".lock", mark)
		},
		"a lock of somebody else's": func(t *testing.T, f files) { t.Helper(); write(t, f.path+".lock", []byte("4711\n")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := files{path: journalFile(t), early: journalFile(t), other: journalFile(t)}
			for _, name := range []string{"x", "y", "z"} { // a later and longer generation
				other := open(t, f.other)
				enter(t, other, name)
				crash(t, other)
			}
			j := open(t, f.path)
			enter(t, j, "a")
			must(t, j.Close())
			write(t, f.early, read(t, f.path))
			j = open(t, f.path)
			enter(t, j, "b")
			enter(t, j, "c")
			crash(t, j)
			lock := read(t, f.path+".lock")

			harm(t, f)
			harmed, err := os.ReadFile(f.path)
			if _, err := client.OpenJournal(f.path); !errors.Is(err, client.ErrCorrupt) || name == "an earlier copy put back" && !strings.Contains(err.Error(), "earlier copy") {
				t.Errorf("%v, want ErrCorrupt", err)
			}
			left, err2 := os.ReadFile(f.path)
			if string(left) != string(harmed) || errors.Is(err, fs.ErrNotExist) != errors.Is(err2, fs.ErrNotExist) {
				t.Errorf("the file was changed: %q, %v", left, err2)
			}
			if name != "the lock's mark changed" && name != "a lock of somebody else's" && string(read(t, f.path+".lock")) != string(lock) {
				t.Error("the mark was changed: the next start would not notice")
			}
		})
	}
}

// A single flipped bit in the file or its lock file is detected.
func TestJournalWithAFlippedBit(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	enter(t, j, "a")
	enter(t, j, "b")
	crash(t, j)
	for _, name := range []string{path, path + ".lock"} {
		good := read(t, name)
		if len(good) == 0 {
			t.Fatalf("%s is empty", name)
		}
		for i := range 8 * len(good) {
			bad := []byte(string(good))
			bad[i/8] ^= 1 << (i % 8)
			write(t, name, bad)
			if _, err := client.OpenJournal(path); !errors.Is(err, client.ErrCorrupt) {
				t.Fatalf("%s: bit %d of byte %d of %d: %v, want ErrCorrupt", name, i%8, i/8, len(good), err)
			}
		}
		write(t, name, good)
	}
	if diff := cmp.Diff(map[string]string{"a": "key of a", "b": "key of b"}, keysIn(open(t, path))); diff != "" {
		t.Errorf("undamaged (-want +got):\n%s", diff)
	}
}

// A crash in the middle of a rewrite leaves an old mark beside a newer file.
func TestJournalWithAnOldMark(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	enter(t, j, "a")
	must(t, j.Close())
	mark := read(t, path+".lock")
	j = open(t, path) // rewrites the file
	enter(t, j, "b")
	crash(t, j)
	for _, old := range [][]byte{mark, nil} { // or the lock file was lost with its mark
		write(t, path+".lock", old)
		j := open(t, path)
		if diff := cmp.Diff(map[string]string{"a": "key of a", "b": "key of b"}, keysIn(j)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		must(t, j.Close())
	}
}
