package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
)

// magic is the first line of a journal.
const magic = "samekey operations 1\n"

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
	if err := j.Done("unknown"); err != nil {
		t.Error(err)
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
	if _, _, err := j.Begin(t.Context(), e); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Begin: %v", err)
	}
	if err := errors.Join(j.Update(t.Context(), e), j.Done("o")); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Update, Done: %v", err)
	}

	if _, err := client.OpenJournal(filepath.Join(path, "not", "a", "folder")); err == nil {
		t.Error("opened what can't be")
	}
	if _, err := client.OpenJournal(path, func(o *client.JournalOptions) { o.Keep = -1 }); err == nil {
		t.Error("a negative Keep")
	}
}

// A crash may cut the file anywhere. What was promised must still be there.
func TestJournalIsCutAnywhere(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	now := time.Now()
	type state struct {
		size int
		keys map[string]string
	}
	size := func() int {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	keys := map[string]string{}
	begin := size()
	states := []state{{begin, map[string]string{}}}
	for i := range 6 {
		name := fmt.Sprint("order-", i%4)
		if i == 4 { // order-0 is done, then new
			if err := j.Done(name); err != nil {
				t.Fatal(err)
			}
			delete(keys, name)
			states = append(states, state{size(), maps.Clone(keys)})
		}
		e, _, err := j.Begin(t.Context(), client.Entry{Operation: name, Key: fmt.Sprint("key-", i), Created: now, Expires: now.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = e.Key
		states = append(states, state{size(), maps.Clone(keys)})
	}
	crash(t, j)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	for n := begin; n <= len(whole); n++ { // it comes into being with its first line
		for _, tail := range []string{"", "\x00\x00\x00", "garbage\n"}[n%3 : n%3+1] {
			if err := os.WriteFile(path, append(whole[:n:n], tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := client.OpenJournal(path)
			if err != nil {
				t.Fatalf("cut to %d bytes and %q: %v", n, tail, err)
			}
			got := map[string]string{}
			for _, e := range j.Entries() {
				got[e.Operation] = e.Key
			}
			want := states[0].keys
			for _, s := range states {
				if s.size <= n {
					want = s.keys
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("cut to %d of %d bytes and %q (-want +got):\n%s", n, len(whole), tail, diff)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Damage before other lines is no crash: a key could be lost in silence. What is
// no journal is somebody's file.
func TestJournalIsCorrupt(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	j := open(t, path)
	now := time.Now()
	for _, name := range []string{"a", "b", "c"} {
		if _, _, err := j.Begin(t.Context(), client.Entry{Operation: name, Key: "k", Created: now, Expires: now.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	crash(t, j)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"a byte changed":       strings.Replace(string(good), `"op":"b"`, `"op":"x"`, 1),
		"a line cut":           strings.Replace(string(good), `"op":"b"`, "", 1),
		"two bad lines at end": string(good) + "bad\nworse\n",
		"another version":      strings.Replace(string(good), "1\n", "2\n", 1),
		"no key":               magic + withSum(`{"op":"a","expires":"2026-11-21T12:00:00Z"}`),
		"not JSON":             magic + withSum(`{"op"`),
		"no first line":        strings.TrimPrefix(string(good), magic),
		"no journal":           "root:x:0:0:root:/root:/bin/sh\n",
	} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := client.OpenJournal(path); !errors.Is(err, client.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
		left, err := os.ReadFile(path)
		if err != nil || string(left) != data {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestJournalInAnEmptyFile(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

// A rewrite that a crash interrupted leaves a file that is of no use.
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

// The file stays small however much goes through it, and holds no bodies.
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
