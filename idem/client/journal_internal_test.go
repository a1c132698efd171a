package client

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// fresh opens a journal of its own, and returns its path.
func fresh(t *testing.T, optFns ...func(*JournalOptions)) (*FileJournal, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "operations")
	return reopened(t, path, optFns...), path
}

// reopened opens the journal at path.
func reopened(t *testing.T, path string, optFns ...func(*JournalOptions)) *FileJournal {
	t.Helper()
	j, err := OpenJournal(path, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// begin begins an operation that is open for an hour.
func begin(t *testing.T, j *FileJournal, name string) error {
	t.Helper()
	now := time.Now()
	_, _, err := j.Begin(t.Context(), Entry{Operation: name, Key: "k", Created: now, Expires: now.Add(time.Hour)})
	return err
}

// badDisk is a file that fails.
type badDisk struct {
	journalFile
	write, sync, truncate error
}

func (d *badDisk) Write(p []byte) (int, error) {
	if d.write == nil {
		return d.journalFile.Write(p)
	}
	n, err := d.journalFile.Write(p[:len(p)/2])
	return n, errors.Join(d.write, err)
}

func (d *badDisk) Sync() error { return errors.Join(d.sync, d.journalFile.Sync()) }

func (d *badDisk) Truncate(n int64) error {
	if d.truncate != nil {
		return d.truncate
	}
	return d.journalFile.Truncate(n)
}

// A failed write promises nothing, and loses no earlier write.
func TestJournalOnABadDisk(t *testing.T) {
	t.Parallel()
	full, failed := errors.New("no space left"), errors.New("input/output error")
	for name, tt := range map[string]struct {
		disk   badDisk
		usable bool   // once the disk works again
		want   string // entries after a new start
	}{
		"full":                        {badDisk{write: full}, true, "c a"},
		"full, and can't be cut back": {badDisk{write: full, truncate: failed}, false, "a"},
		"can't sync":                  {badDisk{sync: failed}, false, "a b"}, // b was not promised, but may be there
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, path := fresh(t)
			if err := begin(t, j, "a"); err != nil {
				t.Fatal(err)
			}
			well := j.file
			tt.disk.journalFile = well
			j.file = &tt.disk
			if err := begin(t, j, "b"); !errors.Is(err, tt.disk.write) && !errors.Is(err, tt.disk.sync) || err == nil {
				t.Errorf("%v: what was not stored was promised", err)
			}
			// What fails isn't remembered either.
			answered := j.entries["a"]
			answered.Status = 201
			if err := j.Update(t.Context(), answered); err == nil || j.entries["a"].Status != 0 {
				t.Errorf("updated: %v, %+v", err, j.entries)
			}
			if err := j.Done("a"); err == nil || len(j.entries) != 1 {
				t.Errorf("done: %v, %+v", err, j.entries)
			}
			j.file = well
			for what, err := range map[string]error{
				"begin": begin(t, j, "c"), "update": j.Update(t.Context(), j.entries["a"]), "done": j.Done("a"), "begin again": begin(t, j, "a"),
			} {
				if (err == nil) != tt.usable || err != nil && !errors.Is(err, failed) {
					t.Errorf("%s: %v, want usable: %t, or the reason", what, err, tt.usable)
				}
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = reopened(t, path)
			defer func() { _ = j.Close() }()
			names := make([]string, 0, 2)
			for _, e := range j.Entries() {
				names = append(names, e.Operation)
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("%q is there, want %q", got, tt.want)
			}
		})
	}
}

// If the file can't be rewritten, the old file stays in use.
func TestJournalThatCantBeRewritten(t *testing.T) {
	t.Parallel()
	j, path := fresh(t)
	defer func() { _ = j.Close() }()
	if err := os.MkdirAll(path+".tmp/in/the/way", 0o700); err != nil {
		t.Fatal(err)
	}
	j.lines = 10 * slack
	for _, name := range []string{"a", "b"} {
		if err := begin(t, j, name); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || bytes.Count(data, []byte("\n")) != 3 {
		t.Errorf("%q, %v", data, err)
	}
	if j.lines != 2 { // it isn't tried again at each line
		t.Errorf("the next try is after %d lines", j.lines)
	}
}

// The file is rewritten in its original place, through links and whatever the
// working directory is.
func TestJournalIsRewrittenInItsPlace(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	if err := os.Mkdir("data", 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := OpenJournal("data/operations")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("data/operations", "link"); err != nil {
		t.Skip(err) // on Windows, links need a privilege
	}
	j, err := OpenJournal("link")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if second, err := OpenJournal("data/operations"); runtime.GOOS != "windows" && !errors.Is(err, ErrLocked) {
		t.Errorf("%v, %v: want ErrLocked by the file's other name", second, err)
	}
	t.Chdir(t.TempDir())
	j.lines = 10 * slack
	if err := begin(t, j, "a"); err != nil || j.lines > 1 {
		t.Fatalf("%v, %d lines", err, j.lines)
	}
	for _, name := range []string{"link", "data/operations"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(data), `"op":"a"`) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

func FuzzJournalFile(f *testing.F) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 1, time.UTC)
	whole, end := place{id: "journal", gen: 7}.header()
	for _, l := range []line{
		lineOf(Entry{Operation: "order-42", Key: "k", Fingerprint: "f", Created: at, Expires: at, Answered: at, Status: 201}),
		{Operation: "order-42", Done: true},
	} {
		text, sum, err := l.encode(end.sum)
		if err != nil {
			f.Fatal(err)
		}
		whole, end.sum = append(whole, text...), sum
	}
	f.Add(whole, 3)
	f.Add(whole[:len(whole)-20], 400)
	f.Add([]byte(magic1+"00000000 {}\n"), 1)
	f.Add([]byte(magic1), 9)
	f.Fuzz(func(t *testing.T, data []byte, bit int) {
		lines, at, err := decodeFile(data, nil)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v", err)
			}
			return
		}
		if len(lines) > bytes.Count(data, []byte("\n")) || at.size > int64(len(data)) {
			t.Errorf("%d lines, %d bytes in %q", len(lines), at.size, data)
		}
		if at.id == "" { // version 1
			return
		}
		if again, end, err := decodeFile(data[:at.size], &at); err != nil || end != at || !slices.Equal(again, lines) {
			t.Errorf("at its own mark: %v, %+v, %v", again, end, err)
		}
		if i := bit & 0xffff; i < 8*int(at.size) { // a flipped bit is detected
			broken := slices.Clone(data)
			broken[i/8] ^= 1 << (i % 8)
			if lines, _, err := decodeFile(broken, &at); err == nil {
				t.Errorf("%q was read as %+v", broken, lines)
			}
		}
	})
}

// The same without a mark, for every bit of a complete file.
func TestJournalFileWithAFlippedBit(t *testing.T) {
	t.Parallel()
	data, end := place{id: "journal", gen: 7}.header()
	for _, name := range []string{"a", "b"} {
		text, sum, err := lineOf(Entry{Operation: name, Key: "k", Expires: time.Now()}).encode(end.sum)
		if err != nil {
			t.Fatal(err)
		}
		data, end.sum = append(data, text...), sum
	}
	if _, _, err := decodeFile(data, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(data) {
		broken := slices.Clone(data)
		broken[i/8] ^= 1 << (i % 8)
		if lines, _, err := decodeFile(broken, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("bit %d of byte %d: %+v, %v", i%8, i/8, lines, err)
		}
	}
}

// unsynced is a file whose lines are not waited for.
type unsynced struct{ journalFile }

func (unsynced) Sync() error { return nil }

// A process that goes on for long forgets answered operations, too, not only one that begins.
func TestJournalForgetsWhileItIsOpen(t *testing.T) {
	t.Parallel()
	j, path := fresh(t, func(o *JournalOptions) { o.Keep = time.Nanosecond })
	defer func() { _ = j.Close() }()
	for i := range 3 * slack {
		if _, ok := j.file.(unsynced); !ok {
			j.file = unsynced{j.file}
		}
		e := Entry{Operation: strconv.Itoa(i), Key: "k", Created: time.Now(), Expires: time.Now().Add(-time.Second)}
		if _, _, err := j.Begin(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		e.Answered, e.Status = time.Now(), 201
		if err := j.Update(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(j.entries); n > slack+1 {
		t.Errorf("%d entries are in memory, want at most %d", n, slack+1)
	}
	if data, err := os.ReadFile(path); err != nil || bytes.Count(data, []byte("\n")) > 2*slack+3 {
		t.Errorf("%d lines, %v", bytes.Count(data, []byte("\n")), err)
	}
}

// The file is rewritten when more of it is outdated than not, and the old one is closed.
func TestJournalIsRewrittenInTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lines, kept int // with four entries
		rewritten   bool
	}{
		{2*4 + slack, 4, false},
		{2*4 + slack + 1, 4, true},
		{4, 2 - slack/2, false}, // 2*kept+slack = 4
		{4, 1 - slack/2, true},
	} {
		j, _ := fresh(t)
		for _, name := range []string{"a", "b", "c", "d"} {
			if err := begin(t, j, name); err != nil {
				t.Fatal(err)
			}
		}
		old := j.file
		j.lines, j.kept = tt.lines, tt.kept
		if err := begin(t, j, "e"); err != nil {
			t.Fatal(err)
		}
		if got := j.file != old; got != tt.rewritten {
			t.Errorf("%+v: rewritten: %t", tt, got)
		}
		if tt.rewritten {
			if err := old.Close(); !errors.Is(err, os.ErrClosed) || j.lines != 5 || j.kept != 4 {
				t.Errorf("the old file: %v; %d lines, %d kept", err, j.lines, j.kept)
			}
		}
		file := j.file
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("the closed journal's file: %v", err)
		}
	}
}

// harming is a file that harms its path as it is synced.
type harming struct {
	journalFile
	harm func() error
}

func (h harming) Sync() error { return errors.Join(h.journalFile.Sync(), h.harm()) }

// A line counts only if it is in the file that the next process will read. Otherwise the
// mark stays where it is, so that the next process finds what was promised.
func TestJournalIsReplacedWhileALineIsWritten(t *testing.T) {
	t.Parallel()
	j, path := fresh(t)
	if err := begin(t, j, "a"); err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	j.file = harming{j.file, func() error {
		return errors.Join(os.WriteFile(path+".copy", copied, 0o600), os.Rename(path+".copy", path))
	}}
	if err := begin(t, j, "b"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = reopened(t, path)
	defer func() { _ = j.Close() }()
	if e := j.Entries(); len(e) != 1 || e[0].Operation != "a" {
		t.Errorf("entries %+v", e)
	}
}

// Without its mark a line isn't promised, and the journal is of no more use.
func TestJournalWhoseMarkCantBeWritten(t *testing.T) {
	t.Parallel()
	j, path := fresh(t)
	defer func() { _ = j.Close() }()
	lock, err := os.Open(lockPath(path)) // not for writing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	j.lock = lock
	if err := j.rewrite(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("rewritten: %v, want that its mark can't be written", err)
	}
	for range 2 {
		j.broken = nil
		err := begin(t, j, "a")
		if again := j.usable(); !errors.Is(err, syscall.EBADF) || !errors.Is(again, syscall.EBADF) {
			t.Errorf("begun: %v, then %v", err, again)
		}
		delete(j.entries, "a")
	}
	// A line behind a rewrite that failed would be in the new file, and follow the old one's.
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	j.broken, j.lines = nil, 2*slack
	if err := begin(t, j, "late"); !errors.Is(err, syscall.EBADF) {
		t.Errorf("begun behind a rewrite: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || bytes.Contains(after, []byte("late")) || len(after) > len(before) {
		t.Errorf("%d bytes, then %d, with the line (%v)", len(before), len(after), err)
	}
}

// A rewrite that can't take the file's place leaves nothing beside it.
func TestJournalWhosePlaceIsTaken(t *testing.T) {
	t.Parallel()
	j, path := fresh(t)
	defer func() { _ = j.Close() }()
	if err := errors.Join(os.Remove(path), os.MkdirAll(path+"/in/the/way", 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := j.rewrite(); err == nil {
		t.Error("rewritten")
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left over: %v", err)
	}
}

// A mark that can't be read is no missing mark: keys that it promises could be lost.
func TestMarkThatCantBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	mark := string(place{id: rand.Text(), gen: 7, size: 100}.mark())
	for _, before := range []string{"", mark[:20], mark} {
		if p, err := readMark(io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %+v, %v", len(before), p, err)
		}
	}
}

// A line that is whole and has its checksum, but lacks what every line has, is damage; so is
// one whose length is no number.
func TestLineThatNobodyWrites(t *testing.T) {
	t.Parallel()
	begin, at := place{id: "journal", gen: 7}.header()
	for _, l := range []line{{Key: "k", Expires: time.Now()}, {Operation: "a", Key: "k"}, {Operation: "a", Expires: time.Now()}} {
		text, _, err := l.encode(at.sum)
		if err != nil {
			t.Fatal(err)
		}
		if lines, _, err := decodeFile(slices.Concat(begin, text), nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %+v, %v", text, lines, err)
		}
	}
	if lines, _, err := decodeFile(append(begin, `00000000 x7 {"op":"a"`...), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("no length: %+v, %v", lines, err)
	}
}

// badEnd is a file that can't be closed.
type badEnd struct {
	journalFile
	err error
}

func (b badEnd) Close() error { return errors.Join(b.err, b.journalFile.Close()) }

// A file that can't be closed is told, and its lock is free all the same.
func TestJournalThatCantBeClosed(t *testing.T) {
	t.Parallel()
	j, path := fresh(t)
	failed := errors.New("input/output error")
	j.file = badEnd{j.file, failed}
	if err := j.Close(); !errors.Is(err, failed) {
		t.Errorf("closed: %v", err)
	}
	j = reopened(t, path)
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
