package client_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
)

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

	if _, err := client.OpenJournal(path, func(o *client.JournalOptions) { o.Keep = -1 }); err == nil {
		t.Error("a negative Keep")
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

// A crash may cut the current line anywhere. Promised lines must still be there;
// any other loss is not due to a crash.
func TestJournalIsCutAnywhere(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	now := time.Now()
	type state struct {
		size int
		mark []byte
		keys map[string]string
	}
	keys := map[string]string{}
	var states []state
	note := func() {
		states = append(states, state{len(read(t, path)), read(t, path+".lock"), maps.Clone(keys)})
	}
	note()
	for i := range 6 {
		name := fmt.Sprint("order-", i%4)
		if i == 4 { // order-0 is done, then new
			if err := j.Done(name); err != nil {
				t.Fatal(err)
			}
			delete(keys, name)
			note()
		}
		e, _, err := j.Begin(t.Context(), client.Entry{Operation: name, Key: fmt.Sprint("key-", i), Created: now, Expires: now.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = e.Key
		note()
	}
	crash(t, j)
	whole := read(t, path)

	for n := range len(whole) + 1 {
		last := 0 // the last complete state
		for i, s := range states {
			if s.size <= n {
				last = i
			}
		}
		tail := []string{"", "\x00\x00\x00"}[n%2]
		// The mark is never beyond the disk's contents; after a power failure it may be
		// earlier.
		for _, i := range []int{last + 1, last, n % (last + 1)} {
			if i == len(states) {
				continue
			}
			write(t, path, append(whole[:n:n], tail...))
			write(t, path+".lock", states[i].mark)
			j, err := client.OpenJournal(path)
			if i > last || n < states[0].size {
				if !errors.Is(err, client.ErrCorrupt) {
					t.Fatalf("cut to %d of %d bytes that were promised, and %q: %v", n, states[i].size, tail, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("cut to %d bytes and %q, of which %d were promised: %v", n, tail, states[i].size, err)
			}
			if diff := cmp.Diff(states[last].keys, keysIn(j)); diff != "" {
				t.Fatalf("cut to %d of %d bytes and %q (-want +got):\n%s", n, len(whole), tail, diff)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Even without the lock file's mark, damage differs from a crash. A file that is
// no journal belongs to another program.
func TestJournalIsCorrupt(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	for _, name := range []string{"a", "b", "c"} {
		enter(t, j, name)
	}
	crash(t, j)
	good := string(read(t, path))
	const old = "samekey operations 1\n"
	for name, data := range map[string]string{
		"empty":                 "",
		"a byte changed":        strings.Replace(good, `"op":"b"`, `"op":"x"`, 1),
		"last line changed":     strings.Replace(good, `"op":"c"`, `"op":"x"`, 1),
		"last byte changed":     strings.TrimSuffix(good, "\n") + "\v",
		"a line cut":            strings.Replace(good, `"op":"b"`, "", 1),
		"a bad line at its end": good + "bad\n",
		"another version":       strings.Replace(good, "operations 2", "operations 3", 1),
		"no first line":         good[strings.Index(good, "\n")+1:],
		"half a first line":     good[:30],
		"no journal":            "root:x:0:0:root:/root:/bin/sh\n",

		"version 1, no name":           old + withSum(`{"key":"k","expires":"2026-11-21T12:00:00Z"}`),
		"version 1, no lifetime":       old + withSum(`{"op":"a","key":"k"}`),
		"version 1, a changed line":    old + strings.Replace(withSum(oldLine("a")), `"key of a"`, `"key of b"`, 1) + withSum(oldLine("b")),
		"version 1, another type":      old + withSum(`{"op":"a","key":"k","expires":"2026-11-21T12:00:00Z","status":"x"}`),
		"version 1, no key":            old + withSum(`{"op":"a","expires":"2026-11-21T12:00:00Z"}`),
		"version 1, not JSON":          old + withSum(`{"op"`),
		"version 1, a bad line":        old + "bad\n" + withSum(oldLine("a")),
		"version 1, a bad last line":   old + withSum(oldLine("a")) + "bad\n",
		"version 1, a bad last byte":   old + strings.TrimSuffix(withSum(oldLine("a")), "\n") + "\v",
		"version 1 in version 2's way": old + good[strings.Index(good, "\n")+1:],
	} {
		write(t, path, []byte(data))
		write(t, path+".lock", nil)
		if _, err := client.OpenJournal(path); !errors.Is(err, client.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
		if string(read(t, path)) != data {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// The error tells where the damage is, and what can be done about a file that is empty.
func TestJournalTellsItsDamage(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	enter(t, j, "a")
	enter(t, j, "b")
	crash(t, j)
	good := string(read(t, path))
	const old = "samekey operations 1\n"
	for data, want := range map[string]string{
		"": "it is empty",
		strings.Replace(good, `"op":"a"`, `"op":"x"`, 1):    "line 2: ",
		strings.Replace(good, `"op":"b"`, `"op":"x"`, 1):    "line 3: ",
		old + "bad\n" + withSum(oldLine("a")):               "line 2: ",
		old + withSum(oldLine("a")) + withSum(`{"op":"b"}`): "line 3: ",
	} {
		write(t, path, []byte(data))
		write(t, path+".lock", nil)
		if _, err := client.OpenJournal(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func oldLine(name string) string {
	return fmt.Sprintf(`{"op":%q,"key":"key of %[1]s","fp":"f","created":"2026-11-21T12:00:00Z","expires":"9000-01-01T00:00:00Z"}`, name)
}

// A complete or cut journal of version 1 is read, and has version 2 from then on.
func TestJournalOfVersion1(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	for _, tail := range []string{"", withSum(oldLine("c"))[:40], "\x00\x00"} {
		write(t, path, []byte("samekey operations 1\n"+withSum(oldLine("a"))+withSum(oldLine("b"))+withSum(`{"op":"a","done":true}`)+tail))
		write(t, path+".lock", nil)
		for range 2 {
			j, err := client.OpenJournal(path)
			if err != nil {
				t.Fatalf("%q: %v", tail, err)
			}
			if diff := cmp.Diff(map[string]string{"b": "key of b"}, keysIn(j)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tail, diff)
			}
			must(t, j.Close())
		}
		if data := read(t, path); !strings.HasPrefix(string(data), "samekey operations 2 ") {
			t.Errorf("it became %q", data)
		}
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

// The file stays small after many operations, and holds no bodies.
func TestJournalStaysSmall(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	s := roundTripperFunc(func(r *http.Request) (*http.Response, error) { return answer(201)(r) })
	tr := client.New(s, with(j))
	status(t, tr, named(t, "POST", "kept", "secret body"))
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 80 {
				name := fmt.Sprint(w, "-", i)
				status(t, tr, named(t, "POST", name, "secret body"))
				if err := j.Done(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(data), "\n"); lines > 1200 {
		t.Errorf("%d lines for one entry", lines)
	}
	for _, secret := range []string{"secret", "api.test", "orders"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("the file has %q in it", secret)
		}
	}
	crash(t, j)
	if got := open(t, path).Entries(); len(got) != 1 || got[0].Operation != "kept" {
		t.Errorf("entries %+v", got)
	}
}
