package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// fresh opens a journal of its own, and returns its path.
func fresh(t *testing.T) (*FileJournal, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "operations")
	return reopened(t, path), path
}

// reopened opens the journal at path until the test ends.
func reopened(t *testing.T, path string) *FileJournal {
	t.Helper()
	j, err := OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// begin begins an operation that is open for an hour.
func begin(t *testing.T, j *FileJournal, name string) error {
	t.Helper()
	now := time.Now()
	_, _, err := j.Begin(t.Context(), Entry{Operation: name, Key: "k", Created: now, Expires: now.Add(time.Hour)})
	return err
}

// names returns the journal's operations.
func (j *FileJournal) names() string {
	var names []string
	for _, e := range j.Entries() {
		names = append(names, e.Operation)
	}
	return strings.Join(names, " ")
}

// badDisk is a file that fails.
type badDisk struct {
	journalFile
	write, sync, truncate, end error
	harm                       func() error // called as a line is synced
}

func (d *badDisk) Write(p []byte) (int, error) {
	if d.write == nil {
		return d.journalFile.Write(p)
	}
	n, err := d.journalFile.Write(p[:len(p)/2])
	return n, errors.Join(d.write, err)
}

func (d *badDisk) Sync() error {
	err := errors.Join(d.sync, d.journalFile.Sync())
	if d.harm != nil {
		err = errors.Join(err, d.harm())
	}
	return err
}

func (d *badDisk) Truncate(n int64) error {
	if d.truncate != nil {
		return d.truncate
	}
	return d.journalFile.Truncate(n)
}

func (d *badDisk) Close() error { return errors.Join(d.end, d.journalFile.Close()) }

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
			_ = j.Close()
			if got := reopened(t, path).names(); got != tt.want {
				t.Errorf("%q is there, want %q", got, tt.want)
			}
		})
	}
}

// A file that can't be closed is told, and its lock is free all the same.
func TestJournalThatCantBeClosed(t *testing.T) {
	t.Parallel()
	j, path := fresh(t)
	failed := errors.New("input/output error")
	j.file = &badDisk{journalFile: j.file, end: failed}
	if err := j.Close(); !errors.Is(err, failed) {
		t.Errorf("closed: %v", err)
	}
	reopened(t, path)
}

// If the file can't be rewritten, the old file stays in use, and nothing lies beside it.
func TestJournalThatCantBeRewritten(t *testing.T) {
	t.Parallel()
	j, path := fresh(t)
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
	if err := errors.Join(os.RemoveAll(path+".tmp"), os.Remove(path), os.MkdirAll(path+"/in/the/way", 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := j.rewrite(); err == nil {
		t.Error("rewritten, though its place is taken")
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left over: %v", err)
	}
}

// The file is rewritten in its original place, through links and whatever the working
// directory is, and the old one is closed.
func TestJournalIsRewrittenInItsPlace(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	if err := os.Mkdir("data", 0o700); err != nil {
		t.Fatal(err)
	}
	_ = reopened(t, "data/operations").Close()
	if err := os.Symlink("data/operations", "link"); err != nil {
		t.Skip(err) // on Windows, links need a privilege
	}
	j := reopened(t, "link")
	if second, err := OpenJournal("data/operations"); runtime.GOOS != "windows" && !errors.Is(err, ErrLocked) {
		t.Errorf("%v, %v: want ErrLocked by the file's other name", second, err)
	}
	t.Chdir(t.TempDir())
	old := j.file
	j.lines = 10 * slack
	if err := begin(t, j, "a"); err != nil || j.lines > 1 {
		t.Fatalf("%v, %d lines", err, j.lines)
	}
	if err := old.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the old file: %v, want it closed", err)
	}
	for _, name := range []string{"link", "data/operations"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(data), `"op":"a"`) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// unsynced is a file whose lines are not waited for.
type unsynced struct{ journalFile }

func (unsynced) Sync() error { return nil }

// A process that goes on for long forgets answered operations, too, not only one that
// begins, and its file stays small.
func TestJournalForgetsWhileItIsOpen(t *testing.T) {
	t.Parallel()
	j, path := fresh(t)
	j.keep = time.Nanosecond
	for i := range 3 * slack {
		if _, ok := j.file.(unsynced); !ok {
			j.file = unsynced{j.file}
		}
		e := Entry{Operation: fmt.Sprint(i), Key: "k", Created: time.Now(), Expires: time.Now().Add(-time.Second)}
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
	j.file = &badDisk{journalFile: j.file, harm: func() error {
		return errors.Join(os.WriteFile(path+".copy", copied, 0o600), os.Rename(path+".copy", path))
	}}
	if err := begin(t, j, "b"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
	_ = j.Close()
	if got := reopened(t, path).names(); got != "a" {
		t.Errorf("%q is there, want a", got)
	}
}

// Without its mark a line isn't promised, and the journal is of no more use.
func TestJournalWhoseMarkCantBeWritten(t *testing.T) {
	t.Parallel()
	j, path := fresh(t)
	lock, err := os.Open(lockPath(path)) // not for writing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	j.lock = lock
	err = begin(t, j, "a")
	if again := begin(t, j, "b"); !errors.Is(err, syscall.EBADF) || !errors.Is(again, syscall.EBADF) {
		t.Errorf("begun: %v, then %v", err, again)
	}
	// A line behind a rewrite that failed would be in the new file, and follow the old one's.
	j.broken, j.lines = nil, 2*slack
	if err := begin(t, j, "late"); !errors.Is(err, syscall.EBADF) {
		t.Errorf("begun behind a rewrite: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || bytes.Contains(after, []byte("late")) {
		t.Errorf("%q, %v: with the line", after, err)
	}
}

// journalOf returns a file with the lines, and its place after each, the first line's first.
func journalOf(t testing.TB, lines ...line) ([]byte, []place) {
	t.Helper()
	data, at := place{id: strings.Repeat("J", 26), gen: 7}.header()
	places := []place{at}
	for _, l := range lines {
		text, sum, err := l.encode(at.sum)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, text...)
		at.sum, at.size = sum, int64(len(data))
		places = append(places, at)
	}
	return data, places
}

func someLines() []line {
	at := time.Date(2026, 11, 21, 12, 0, 0, 1, time.UTC)
	return []line{
		lineOf(Entry{Operation: "order-42", Key: "k", Fingerprint: "f", Created: at, Expires: at}),
		lineOf(Entry{Operation: "order-43", Key: "k", Fingerprint: "f", Created: at, Expires: at, Answered: at, Status: 201}),
		{Operation: "order-42", Done: true},
	}
}

func FuzzJournalFile(f *testing.F) {
	whole, _ := journalOf(f, someLines()...)
	f.Add(whole, 3)
	f.Add(whole[:len(whole)-20], 400)
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

// A single flipped bit is detected, in the file with and without a mark, and in the mark.
func TestJournalFileWithAFlippedBit(t *testing.T) {
	t.Parallel()
	data, places := journalOf(t, someLines()...)
	end := places[3]
	for _, mark := range []*place{nil, &end} {
		if lines, at, err := decodeFile(data, mark); err != nil || at != end || !slices.Equal(lines, someLines()) {
			t.Fatalf("%+v, %+v, %v", lines, at, err)
		}
		for i := range 8 * len(data) {
			broken := slices.Clone(data)
			broken[i/8] ^= 1 << (i % 8)
			if lines, _, err := decodeFile(broken, mark); !errors.Is(err, ErrCorrupt) {
				t.Errorf("bit %d of byte %d: %+v, %v", i%8, i/8, lines, err)
			}
		}
	}
	for i := range 8 * markSize {
		broken := end.mark()
		broken[i/8] ^= 1 << (i % 8)
		if p, err := readMark(bytes.NewReader(broken)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("bit %d of byte %d of the mark: %+v, %v", i%8, i/8, p, err)
		}
	}
}

// A crash may cut the current line anywhere, and after a power failure the mark may be an
// earlier one. Promised lines must still be there; any other loss is not due to a crash.
func TestJournalIsCutAnywhere(t *testing.T) {
	t.Parallel()
	data, places := journalOf(t, someLines()...)
	for n := range len(data) + 1 {
		whole := -1 // lines
		for i, p := range places {
			if int(p.size) <= n {
				whole = i
			}
		}
		for _, tail := range []string{"", "\x00\x00\x00"} {
			for i := range places {
				lines, at, err := decodeFile(append(data[:n:n], tail...), &places[i])
				if i > whole {
					if !errors.Is(err, ErrCorrupt) {
						t.Errorf("cut to %d of %d bytes that were promised, and %q: %v", n, places[i].size, tail, err)
					}
				} else if err != nil || at != places[whole] || !slices.Equal(lines, someLines()[:whole]) {
					t.Errorf("cut to %d bytes and %q, of which %d were promised: %+v, %v", n, tail, places[i].size, lines, err)
				}
			}
		}
	}
}

// What nobody writes is damage, whole and with its checksum though it is. A mark that can't
// be read is no missing mark: keys that it promises could be lost.
func TestLinesThatNobodyWrites(t *testing.T) {
	t.Parallel()
	head, places := journalOf(t)
	for _, l := range []line{{Key: "k", Expires: time.Now()}, {Operation: "a", Key: "k"}, {Operation: "a", Expires: time.Now()}} {
		if data, _ := journalOf(t, l); true {
			if lines, _, err := decodeFile(data, nil); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: %+v, %v", data, lines, err)
			}
		}
	}
	if lines, _, err := decodeFile(append(head, `00000000 x7 {"op":"a"`...), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("no length: %+v, %v", lines, err)
	}
	broken := errors.New("input/output error")
	mark := string(places[0].mark())
	for _, before := range []string{"", mark[:20], mark} {
		if p, err := readMark(io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("a mark that fails after %d bytes: %+v, %v", len(before), p, err)
		}
	}
}

type refusing struct{ n int }

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.n++
	return nil, syscall.ECONNRESET
}

// A laptop slept or a sandbox was frozen: the wait took a second by the timers
// and two days by the wall clock.
func TestNoRetryAfterASleepThatOutlastedTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base, asleep, told := &refusing{}, time.Duration(0), ""
		tr := New(base, func(o *Options) {
			o.Hooks.Retry = func(context.Context, Event) { asleep = 48 * time.Hour }
			o.Hooks.GaveUp = func(_ context.Context, ev Event) { told += ev.Reason }
		})
		tr.now = func() time.Time { return time.Now().Add(asleep) }
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.test/", http.NoBody)
		_, err := tr.RoundTrip(req)
		e, ok := errors.AsType[*Error](err)
		if !ok || base.n != 1 || !errors.Is(err, ErrExpired) || !errors.Is(err, syscall.ECONNRESET) || !e.Unknown || e.GaveUp != reasonLifetime || told != reasonLifetime {
			t.Errorf("%+v after %d attempts, told %q", e, base.n, told)
		}
	})
}

// A machine came up with a clock that is days behind: the key seems new, and the server
// may have forgotten it.
func TestNoRetryBeforeItsOperationBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := &refusing{}
		journal, _ := fresh(t)
		for i, step := range []struct {
			later, clock time.Duration
			refused      bool
		}{
			{0, 0, false},
			{time.Second, -2 * time.Second, false}, // as exact as clocks are
			{0, -3*time.Second - 1, true},
			{30 * time.Hour, -48 * time.Hour, true},
		} {
			time.Sleep(step.later) //nolint:forbidigo // virtual
			before := base.n
			tr := New(base, func(o *Options) { o.Journal, o.MaxRetries = journal, -1 })
			tr.now = func() time.Time { return time.Now().Add(step.clock) }
			req, _ := http.NewRequestWithContext(WithOperation(t.Context(), "order-42"), http.MethodPost, "https://api.test/", http.NoBody)
			_, err := tr.RoundTrip(req)
			e, ok := errors.AsType[*Error](err)
			if !ok || errors.Is(err, ErrExpired) != step.refused || (base.n == before) != step.refused || !e.Unknown || e.Key != journal.Entries()[0].Key {
				t.Errorf("step %d: %+v, sent %d times", i, e, base.n-before)
			}
		}
	})
}
