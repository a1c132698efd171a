package client

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// slack is how many lines a journal's file may have beyond twice its entries.
const slack = 1000

// realPath is path as it will be meant when the file is rewritten, too: not
// relative to where the process is by then, and not a link, which would be
// replaced instead of what it points to.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	switch real, err := filepath.EvalSymlinks(path); {
	case err == nil:
		return real, nil
	case errors.Is(err, fs.ErrNotExist): // made by rewrite
		return path, nil
	default:
		return "", err
	}
}

// load reads the file, up to where the lock's mark says at least.
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
		return fmt.Errorf("%w: it is gone, and with it the keys of operations: put it back, or remove %s too to begin with none",
			ErrCorrupt, lockPath(j.path))
	case err != nil:
		return err
	case len(data) == 0:
		return fmt.Errorf("%w: it is empty, which no journal ever is: put it back, or remove it (and %s) to begin with none",
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
	if j.at = at; at.id == "" { // of version 1
		j.at.id = rand.Text()
	}
	return nil
}

// append writes a line and waits until it is on the disk.
func (j *FileJournal) append(l line) error {
	if j.lines > 2*len(j.entries)+slack {
		if err := j.rewrite(); err != nil {
			j.lines = 0 // the old file still serves; try again after another slack
		}
		if j.broken != nil {
			return j.broken
		}
	}
	text, sum, err := l.encode(j.at.sum)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(text); err != nil { // disk full: take back what was written of it
		if undo := j.file.Truncate(j.at.size); undo != nil {
			j.broken = errors.Join(err, undo)
		}
		return err
	}
	if err := j.file.Sync(); err != nil { // the system may have dropped the data, and won't tell again
		j.broken = err
		return err
	}
	j.at.size, j.at.sum = j.at.size+int64(len(text)), sum
	j.lines++
	// Only now is it known that it went where the next process will look for it.
	if err := j.reach(); err != nil {
		return err
	}
	return nil
}

// reach writes the mark of the place that the file has reached.
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

// rewrite replaces the file by one with the entries that count. A crash leaves
// the old file or the new one.
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
	// From here on the old file is no longer the journal.
	file, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		if j.file != nil {
			_ = j.file.Close() // synced, and nobody's any more
		}
		j.file = file
		j.opened, err = file.Stat()
	}
	if err == nil {
		err = syncFolder(filepath.Dir(j.path))
	}
	if err != nil {
		j.broken = err // what is appended now might be gone with the new name
		return err
	}
	j.at, j.lines = at, len(entries)
	clear(j.entries)
	for _, e := range entries {
		j.entries[e.Operation] = e
	}
	if err := j.reach(); err != nil {
		return err
	}
	return j.lock.Sync() // once, so that a power failure leaves an old mark and not half of one
}

func lockPath(path string) string { return path + ".lock" }

// writeFile makes a file for its owner only, and sees it onto the disk.
func writeFile(path string, data []byte) error {
	_ = os.Remove(path) // left over by a crash, with whatever mode
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncFolder sees the names in a folder onto the disk, where the system can.
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
