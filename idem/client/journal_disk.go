package client

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// A journal's file is rewritten when it has more than 2 × entries + slack lines.
const slack = 1000

// realPath returns the absolute path of the file with all links resolved. A rewrite
// needs this path: the working directory may have changed, and a rewrite through a link
// would replace the link instead of the file.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return path, err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) { // not an error here, since rewrite creates the file
		err = nil
	}
	return cmp.Or(real, path), err
}

// FileJournal.load reads the journal's file. If the file ends before the mark in the
// lock file, load returns an error.
func (j *FileJournal) load() error {
	mark, err := readMark(j.lock)
	if err != nil {
		return fmt.Errorf("%s: %w; if the journal is whole, remove this file", lockPath(j.path), err)
	}
	data, err := os.ReadFile(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mark == nil:
		j.at.id = rand.Text()
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the file is gone, and with it the keys of operations: restore it, or remove %s too, to begin with an empty journal",
			ErrCorrupt, lockPath(j.path))
	case err != nil:
		return err
	case len(data) == 0:
		return fmt.Errorf("%w: the file is empty, which no journal is: restore it, or remove it and %s, to begin with an empty journal",
			ErrCorrupt, lockPath(j.path))
	}
	lines, at, err := decodeFile(data, mark)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.Done {
			delete(j.entries, l.Operation)
		} else {
			j.entries[l.Operation] = l.entry()
		}
	}
	j.at = at
	return nil
}

// FileJournal.append writes a line and waits until the disk has stored it.
func (j *FileJournal) append(l line) error {
	// Rewrite the file if later lines have replaced many of its lines. Also rewrite the
	// file if many entries were added since the last rewrite, since many entries may be
	// forgotten by now.
	if j.lines > 2*len(j.entries)+slack || len(j.entries) > 2*j.kept+slack {
		if err := j.rewrite(); err != nil {
			j.lines, j.kept = 0, len(j.entries) // try the next rewrite after at least slack further lines
		}
		if j.broken != nil { // the rewrite failed after its rename: append nothing, since j.at may not fit the new file
			return j.broken
		}
	}
	text, sum, err := l.encode(j.at.sum)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(text); err != nil { // a full disk, for example, may have left a part of the line: remove this part
		if undo := j.file.Truncate(j.at.size); undo != nil {
			j.broken = errors.Join(err, undo)
		}
		return err
	}
	if err := j.file.Sync(); err != nil { // the line may be lost, even if a later Sync succeeds: the system reports a loss only once
		j.broken = err
		return err
	}
	j.at.size, j.at.sum = j.at.size+int64(len(text)), sum
	j.lines++
	// reach also checks that the line is in the file that the next process will read.
	return j.reach()
}

// FileJournal.reach writes j.at, the end of the file's complete lines, as the mark into
// the lock file.
func (j *FileJournal) reach() error {
	if err := j.usable(); err != nil {
		return err
	}
	_, err := j.lock.WriteAt(j.at.mark(), 0)
	if err != nil {
		j.broken = fmt.Errorf("%s: %w", lockPath(j.path), err)
	}
	return j.broken
}

// FileJournal.rewrite replaces the file with a new file that contains the live entries.
// After a crash, either the old file or the new file is in place and complete.
func (j *FileJournal) rewrite() error {
	entries := j.live()
	text, at := place{id: j.at.id, gen: j.at.gen + 1}.header()
	data := bytes.NewBuffer(text)
	for _, e := range entries {
		var err error
		if text, at.sum, err = lineOf(e).encode(at.sum); err != nil {
			return err
		}
		data.Write(text)
	}
	at.size = int64(data.Len())
	tmp := j.path + ".tmp"
	if err := writeFile(tmp, data.Bytes()); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	if err := os.Rename(tmp, j.path); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	// From here on the new file is the journal.
	file, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		if j.file != nil {
			_ = j.file.Close() // an error of Close is harmless, since the old file is synced and no longer used
		}
		j.file = file
		j.opened, err = file.Stat()
	}
	if err == nil {
		err = syncFolder(filepath.Dir(j.path))
	}
	if err != nil {
		j.broken = err // append nothing more: a crash could undo the rename and lose the new lines
		return err
	}
	j.at, j.lines, j.kept = at, len(entries), len(entries)
	clear(j.entries)
	for _, e := range entries {
		j.entries[e.Operation] = e
	}
	if err := j.reach(); err != nil {
		return err
	}
	return j.lock.Sync() // from now on, a power failure can leave an old mark, but no torn mark
}

func lockPath(path string) string { return path + ".lock" }

// writeFile creates a file that only its owner may read, and syncs the file to
// the disk.
func writeFile(path string, data []byte) error {
	_ = os.Remove(path) // a crash may have left this file
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncFolder syncs the names in a folder to the disk, if the system can.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
