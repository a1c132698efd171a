package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// DefaultKeep is the default of [JournalOptions].
const DefaultKeep = 7 * 24 * time.Hour

// JournalOptions are a [FileJournal]'s settings.
type JournalOptions struct {
	// Keep is how long an operation is remembered beyond its key's lifetime,
	// to refuse it ([ErrExpired]) instead of doing it again under a new key.
	// After that it is dropped. Default: DefaultKeep.
	Keep time.Duration
}

// FileJournal is a [Journal] in a file, which one process has open at a time.
// Open it with [OpenJournal]. It is safe for concurrent use.
//
// Every change is a line appended to the file and synced to the disk before it
// counts, one after the other. The file is written anew when it is opened and
// when most of it is out of date (on Windows only when it is opened). It is for
// its owner's eyes only (0600) and holds names, keys, hashes and times, no bodies
// and no addresses.
//
// When the disk fails in a way that leaves the file in doubt, or the file is
// deleted, replaced or changed by others while it is open ([ErrCorrupt]), the
// journal refuses everything from then on, and so nothing is sent. Open it again
// once the matter is settled.
type FileJournal struct {
	path string
	keep time.Duration

	mu      sync.Mutex
	file    journalFile // nil once closed
	opened  os.FileInfo // of file
	lock    *os.File
	locked  os.FileInfo // of lock
	unlock  func() error
	at      place // the end of the lines that are whole
	lines   int
	entries map[string]Entry
	broken  error // the file's state is not known: nothing can be promised any more
}

var _ Journal = (*FileJournal)(nil)

// journalFile is what is asked of an *os.File, so that tests can have it fail.
type journalFile interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// OpenJournal opens the journal at path and makes it where there never was one.
// What a crash left unfinished is tidied up. A file that has lost anything else is
// refused ([ErrCorrupt]): emptied, cut, changed by a single bit, deleted, or
// replaced by an earlier copy. Going on would give operations that are under way
// new keys. To begin with none on purpose, remove the file and its lock.
//
// A file next to it, with ".lock" added to the name, remembers how far the journal
// has come, so it belongs to it and moves with it. It also keeps a second process
// out, which gets [ErrLocked]. On systems without flock (Windows) there is no
// such guard, and the caller has to see to it. Network file systems often can
// neither lock nor sync: use a local disk.
func OpenJournal(path string, optFns ...func(*JournalOptions)) (*FileJournal, error) {
	var o JournalOptions
	for _, fn := range optFns {
		fn(&o)
	}
	setDefault(&o.Keep, DefaultKeep)
	if o.Keep < 0 {
		return nil, fmt.Errorf("client: journal: Keep %v: not negative", o.Keep)
	}
	path, err := realPath(path)
	if err != nil {
		return nil, fmt.Errorf("client: journal: %w", err)
	}
	j := &FileJournal{path: path, keep: o.Keep, entries: make(map[string]Entry)}
	if j.lock, j.unlock, err = lockFile(lockPath(path)); err != nil {
		return nil, fmt.Errorf("client: journal: %w", err)
	}
	if j.locked, err = j.lock.Stat(); err == nil {
		err = j.load()
	}
	if err == nil {
		err = j.rewrite()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("client: journal: %s: %w", path, err), j.Close())
	}
	return j, nil
}

// Begin implements [Journal].
func (j *FileJournal) Begin(ctx context.Context, e Entry) (stored Entry, found bool, err error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return Entry{}, false, err
	}
	if old, ok := j.entries[e.Operation]; ok && !j.over(old, time.Now()) {
		return old, true, nil
	}
	if err := j.append(lineOf(e)); err != nil {
		return Entry{}, false, err
	}
	j.entries[e.Operation] = e
	return e, false, nil
}

// Update implements [Journal].
func (j *FileJournal) Update(_ context.Context, e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if j.entries[e.Operation].Key != e.Key {
		return nil // the caller was done with it meanwhile
	}
	if err := j.append(lineOf(e)); err != nil {
		return err
	}
	j.entries[e.Operation] = e
	return nil
}

// Done forgets an operation: its outcome is put away, or known to be of no
// more interest. The next request under this name is a new operation. Doing so
// for a name that isn't known is fine.
func (j *FileJournal) Done(operation string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if _, ok := j.entries[operation]; !ok {
		return nil
	}
	if err := j.append(line{Operation: operation, Done: true}); err != nil {
		return err
	}
	delete(j.entries, operation)
	return nil
}

// Entries returns the operations that aren't done, the oldest first: what to
// resume after a crash.
func (j *FileJournal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.live()
}

// Close closes the file. Operations under way go on; those that begin get
// [ErrClosed]. Closing twice is fine.
func (j *FileJournal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.unlock == nil {
		return nil
	}
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	err = errors.Join(err, j.unlock())
	j.file, j.unlock = nil, nil
	return err
}

// usable reports why nothing can be written. What is entered in a file that is
// no longer where it was, or not as long as it was, would be lost by a crash.
func (j *FileJournal) usable() error {
	if j.unlock == nil {
		return ErrClosed
	}
	if j.broken != nil {
		return j.broken
	}
	if now, same := sameFile(j.path, j.opened); !same || now.Size() != j.at.size {
		j.broken = fmt.Errorf("%w: %s was deleted, replaced or changed while it was open", ErrCorrupt, j.path)
	} else if _, same := sameFile(lockPath(j.path), j.locked); !same {
		j.broken = fmt.Errorf("%w: %s was deleted or replaced while it was open", ErrCorrupt, lockPath(j.path))
	}
	return j.broken
}

// over reports whether an entry may be forgotten.
func (j *FileJournal) over(e Entry, now time.Time) bool { return now.After(e.Expires.Add(j.keep)) }

// live returns the entries that count.
func (j *FileJournal) live() []Entry {
	now := time.Now()
	entries := make([]Entry, 0, len(j.entries))
	for _, e := range j.entries {
		if !j.over(e, now) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Operation, b.Operation))
	})
	return entries
}
