package client

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// The mark is the place that a journal's file has reached, as its lock file
// remembers it. It is written after the file is synced and isn't synced itself, so
// it may be too low after a power failure, and never too high. By it a file that
// was emptied, cut, deleted or put back is known from one that is new.
//
//	samekey journal 2 <id> <generation> <size> <checksum> <checksum of all before>

// markSize is the length of a mark with its newline: each is written over the
// last.
const markSize = 18 + 26 + 4*1 + 16 + 16 + 8 + 8 + 1

func (p place) mark() []byte {
	text := fmt.Appendf(nil, "samekey journal 2 %26s %016x %016x %08x", p.id, p.gen, p.size, p.sum)
	return fmt.Appendf(text, " %08x\n", crc32.ChecksumIEEE(text))
}

// readMark returns the mark in a lock file, or nil where it has none: the journal
// is new, or of a version before marks.
func readMark(f io.Reader) (*place, error) {
	text, err := io.ReadAll(io.LimitReader(f, markSize+1))
	if err != nil || len(text) == 0 {
		return nil, err
	}
	var p place
	_, err = fmt.Sscanf(string(text), "samekey journal 2 %26s %x %x %x", &p.id, &p.gen, &p.size, &p.sum)
	if err != nil || !bytes.Equal(p.mark(), text) { // as it would be written, to the byte
		return nil, fmt.Errorf("%w: its mark is damaged, or of another version, or it is no lock of a journal", ErrCorrupt)
	}
	return &p, nil
}

// sameFile reports whether the file at path is still the one that was opened.
func sameFile(path string, opened os.FileInfo) (now os.FileInfo, same bool) {
	now, err := os.Lstat(path)
	return now, err == nil && os.SameFile(now, opened)
}
