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

// keepAnswered is how long an answered operation is remembered after its key's lifetime.
// During that time the operation is refused ([ErrExpired]), and can't run again under a new
// key. After that time the operation is dropped. An operation without an answer is never
// dropped, whatever the clock says: only Done forgets it.
const keepAnswered = 7 * 24 * time.Hour

// FileJournal is a [Journal] in a file that only one process at a time can open. Open a
// FileJournal with [OpenJournal]. A FileJournal is safe for concurrent use.
//
// For each change the journal appends a line to the file, and waits until the disk has
// stored the line. Changes are written one at a time. OpenJournal rewrites the file.
// Later, except on Windows, the journal rewrites the file when most lines are outdated.
// Only the owner can read the file (0600). The file contains names, keys, hashes, times
// and statuses, but no bodies and no URLs.
//
// If a disk failure leaves the file's contents uncertain, the journal refuses all
// operations, so that nothing is sent. The journal also refuses all operations
// ([ErrCorrupt]) if another program deletes or replaces the open file or the lock file,
// or changes the open file's length. Repair the cause and open the journal again. A
// change that keeps the length is found by the next OpenJournal, if there was no
// rewrite in between.
type FileJournal struct {
	path string
	keep time.Duration

	mu      sync.Mutex
	file    journalFile // nil once closed
	opened  os.FileInfo // of file
	lock    *os.File
	locked  os.FileInfo // of lock
	unlock  func() error
	at      place // end of the complete lines
	lines   int
	kept    int // number of entries at the last rewrite
	entries map[string]Entry
	broken  error // if set, every operation is refused with this error
}

var _ Journal = (*FileJournal)(nil)

// journalFile lists the methods of *os.File that the journal uses, so that tests can make
// them fail.
type journalFile interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// OpenJournal opens the journal at path, or creates the journal if there never was one.
// An operation with an answer stays in the journal for a week after the end of its
// key's lifetime. During this week, requests of the operation are refused
// ([ErrExpired]). Then the operation is dropped. An operation without an answer stays
// until [FileJournal.Done].
//
// OpenJournal removes the incomplete line that a crash can leave. OpenJournal fails on
// any other damage ([ErrCorrupt]): a file that was emptied, cut, changed by a single
// bit, deleted, or replaced by an earlier copy. With the damaged file, operations in
// progress could get new keys. To begin with an empty journal, remove the file and the
// lock file.
//
// The lock file has the journal's path with ".lock" appended. The lock file stores the
// least length that the journal's file must have, so move both files together. A second
// process that opens the journal gets [ErrLocked]. On systems without flock (Windows) a
// second process gets no error, so the caller must exclude other processes. Use a local
// disk, since network file systems often can neither lock nor sync a file reliably.
func OpenJournal(path string) (*FileJournal, error) {
	path, err := realPath(path)
	if err != nil {
		return nil, fmt.Errorf("client: journal: %w", err)
	}
	j := &FileJournal{path: path, keep: keepAnswered, entries: make(map[string]Entry)}
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
		return nil // the caller has called Done in the meantime
	}
	if err := j.append(lineOf(e)); err != nil {
		return err
	}
	j.entries[e.Operation] = e
	return nil
}

// Done forgets an operation. Call Done when the outcome is stored, or when nobody needs the
// outcome any more. The next request under this name is a new operation. For an unknown
// name, Done returns nil.
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

// Entries returns the operations that are still in the journal, oldest first: those
// that were neither forgotten by Done nor dropped (see [OpenJournal]). After a crash,
// resume these operations.
func (j *FileJournal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.live()
}

// Close closes the file. Running operations continue; new operations get
// an error that matches os.ErrClosed. Close may be called twice.
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

// FileJournal.usable returns an error if the journal is closed or broken, or if another
// program has replaced or changed the file. The next process might not find the lines
// that are written from now on.
func (j *FileJournal) usable() error {
	if j.unlock == nil {
		return fmt.Errorf("journal: %w", os.ErrClosed)
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

// FileJournal.over reports whether an entry may be forgotten. An entry without an answer
// must not be forgotten, even if the clock is wrong: the operation may have been
// carried out, so it must not get a new key.
func (j *FileJournal) over(e Entry, now time.Time) bool {
	return !e.Answered.IsZero() && now.After(e.Expires.Add(j.keep))
}

// FileJournal.live returns the entries that must not be forgotten yet.
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
