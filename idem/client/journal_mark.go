package client

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// The mark in the lock file is a length of the journal's file. The mark is
// never too high, since it is written after the file is synced. After a power failure the
// mark may be too low, since only a rewrite syncs the mark. The mark distinguishes a new
// journal from a journal whose file was emptied, cut, deleted or replaced by an earlier
// copy.
//
//	samekey journal 2 <id> <generation> <size> <checksum> <checksum of all before>

// markSize is the length of a mark with its newline. All marks have the same length, so
// each mark overwrites the previous mark completely.
const markSize = 18 + 26 + 4*1 + 16 + 16 + 8 + 8 + 1

func (p place) mark() []byte {
	text := fmt.Appendf(nil, "samekey journal 2 %26s %016x %016x %08x", p.id, p.gen, p.size, p.sum)
	return fmt.Appendf(text, " %08x\n", crc32.ChecksumIEEE(text))
}

// readMark returns the mark in a lock file, or nil if the lock file is empty. The lock
// file is empty if the journal is new, or if an earlier lock file was lost.
func readMark(f io.Reader) (*place, error) {
	text, err := io.ReadAll(io.LimitReader(f, markSize+1))
	if err != nil || len(text) == 0 {
		return nil, err
	}
	var p place
	_, _ = fmt.Sscanf(string(text), "samekey journal 2 %26s %x %x %x", &p.id, &p.gen, &p.size, &p.sum)
	if !bytes.Equal(p.mark(), text) { // accept only the bytes that the method mark returns
		return nil, fmt.Errorf("%w: its mark is damaged, or of another version, or it is no lock of a journal", ErrCorrupt)
	}
	return &p, nil
}

// sameFile reports whether the file at path is still the file that was opened.
func sameFile(path string, opened os.FileInfo) (now os.FileInfo, same bool) {
	now, _ = os.Lstat(path) // nil after an error: SameFile then returns false
	return now, os.SameFile(now, opened)
}
