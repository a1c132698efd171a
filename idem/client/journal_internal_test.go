package client

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

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
			path := filepath.Join(t.TempDir(), "operations")
			j, err := OpenJournal(path)
			if err != nil {
				t.Fatal(err)
			}
			begin := func(name string) error {
				_, _, err := j.Begin(t.Context(), Entry{Operation: name, Key: "k", Created: time.Now(), Expires: time.Now().Add(time.Hour)})
				return err
			}
			if err := begin("a"); err != nil {
				t.Fatal(err)
			}
			well := j.file
			tt.disk.journalFile = well
			j.file = &tt.disk
			if err := begin("b"); !errors.Is(err, tt.disk.write) && !errors.Is(err, tt.disk.sync) || err == nil {
				t.Errorf("%v: what was not stored was promised", err)
			}
			j.file = well
			for what, err := range map[string]error{
				"begin": begin("c"), "update": j.Update(t.Context(), j.entries["a"]), "done": j.Done("a"), "begin again": begin("a"),
			} {
				if (err == nil) != tt.usable {
					t.Errorf("%s: %v, want usable: %t", what, err, tt.usable)
				}
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if j, err = OpenJournal(path); err != nil {
				t.Fatal(err)
			}
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
	path := filepath.Join(t.TempDir(), "operations")
	j, err := OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if err := os.MkdirAll(path+".tmp/in/the/way", 0o700); err != nil {
		t.Fatal(err)
	}
	j.lines = 10 * slack
	for _, name := range []string{"a", "b"} {
		if _, _, err := j.Begin(t.Context(), Entry{Operation: name, Key: "k", Expires: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || bytes.Count(data, []byte("\n")) != 3 {
		t.Errorf("%q, %v", data, err)
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
	if _, _, err := j.Begin(t.Context(), Entry{Operation: "a", Key: "k", Expires: time.Now().Add(time.Hour)}); err != nil || j.lines > 1 {
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
	path := filepath.Join(t.TempDir(), "operations")
	j, err := OpenJournal(path, func(o *JournalOptions) { o.Keep = time.Nanosecond })
	if err != nil {
		t.Fatal(err)
	}
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
