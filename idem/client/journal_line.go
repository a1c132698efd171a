package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
)

// The constant magic begins the first line of a journal's file. The file is created
// with this line, so a file without this line is no journal, or was emptied.
//
//	samekey operations 2 <id> <generation> <checksum>
//	<checksum> <length> <JSON>
//	…
//
// The id never changes, and each rewrite of the file raises the generation by one. Each
// checksum covers the checksum of the line before and the line's own JSON. A missing or
// moved line is noticed at the next line, whose checksum is then wrong. The length of
// the JSON distinguishes a line that a crash has cut off from a line with a changed
// end.
const magic = "samekey operations "

// line is the state of one operation. For each operation, the last line is valid.
type line struct {
	Operation   string    `json:"op"`
	Done        bool      `json:"done,omitempty"` // true if the operation is forgotten; the fields below are then empty
	Key         string    `json:"key,omitempty"`
	Fingerprint string    `json:"fp,omitempty"`
	Created     time.Time `json:"created,omitzero"`
	Expires     time.Time `json:"expires,omitzero"`
	Answered    time.Time `json:"answered,omitzero"`
	Status      int       `json:"status,omitempty"`
}

func lineOf(e Entry) line {
	return line{
		Operation: e.Operation, Key: e.Key, Fingerprint: e.Fingerprint,
		Created: e.Created.UTC(), Expires: e.Expires.UTC(), Answered: e.Answered.UTC(), Status: e.Status,
	}
}

func (l line) entry() Entry {
	return Entry{
		Operation: l.Operation, Key: l.Key, Fingerprint: l.Fingerprint,
		Created: l.Created, Expires: l.Expires, Answered: l.Answered, Status: l.Status,
	}
}

// line.encode returns the line as the file stores it, and the line's checksum. The
// parameter sum is the checksum of the line before.
func (l line) encode(sum uint32) ([]byte, uint32, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, 0, fmt.Errorf("encoding the entry: %w", err) // json.Marshal fails for a time beyond the year 9999, for example
	}
	sum = crc32.Update(sum, crc32.IEEETable, text)
	return fmt.Appendf(nil, "%08x %d %s\n", sum, len(text), text), sum, nil
}

// place is a position in a journal's history: size bytes from the beginning of the file
// of generation gen. The checksum of the line that ends there is sum.
type place struct {
	id   string
	gen  uint64
	size int64
	sum  uint32
}

// place.header returns the first line of a file with p's id and generation, and the
// place after that line.
func (p place) header() ([]byte, place) {
	text := fmt.Appendf(nil, "%s2 %s %d", magic, p.id, p.gen)
	p.sum = crc32.ChecksumIEEE(text)
	text = fmt.Appendf(text, " %08x\n", p.sum)
	p.size = int64(len(text))
	return text, p
}

// decodeHeader decodes b, the first line of a file with its newline, and returns the
// place after the line.
func decodeHeader(b []byte) (place, error) {
	var p place
	text, _, _ := bytes.Cut(bytes.TrimPrefix(b, []byte(magic+"2 ")), []byte("\n"))
	if fields := bytes.Fields(text); len(fields) == 3 {
		p.id = string(fields[0])
		p.gen, _ = strconv.ParseUint(string(fields[1]), 10, 64)
	}
	again, p := p.header()
	if !bytes.Equal(again, b) { // accept only the bytes that the method header returns
		return place{}, fmt.Errorf("%w: not a journal, or one of another version: its first line is unknown", ErrCorrupt)
	}
	return p, nil
}

// decodeLine decodes b, a line with its newline, and returns the line's checksum. The
// parameter sum is the checksum of the line before.
func decodeLine(b []byte, sum uint32) (line, uint32, error) {
	text := bytes.TrimSuffix(b[max(bytes.IndexByte(b, '{'), 0):], []byte("\n"))
	sum = crc32.Update(sum, crc32.IEEETable, text)
	if !bytes.Equal(b, fmt.Appendf(nil, "%08x %d %s\n", sum, len(text), text)) {
		return line{}, 0, fmt.Errorf("%w: its checksum is another", ErrCorrupt)
	}
	var l line
	switch err := json.Unmarshal(text, &l); {
	case err != nil:
		return line{}, 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
	case l.Operation == "" || !l.Done && (l.Key == "" || l.Expires.IsZero()):
		return line{}, 0, fmt.Errorf("%w: a line lacks fields", ErrCorrupt)
	}
	return l, sum, nil
}

// decodeFile returns the lines of a journal's file, and the place after the last
// complete line. If mark is not nil, the file must be unchanged up to the mark, or be
// of a later generation. decodeFile skips an incomplete line that a crash has left
// after the mark, since no request was sent for the line. Any other damage is an error,
// since a silently forgotten key could let an operation run twice.
func decodeFile(data []byte, mark *place) ([]line, place, error) {
	n := bytes.IndexByte(data, '\n') + 1
	at, err := decodeHeader(data[:n])
	if err != nil {
		return nil, place{}, err
	}
	if mark != nil && (mark.id != at.id || mark.gen > at.gen) {
		return nil, place{}, fmt.Errorf("%w: it is another journal, or an earlier copy of it", ErrCorrupt)
	}
	if mark != nil && mark.gen < at.gen {
		mark = nil // the mark is of an older file: the process died before it wrote the mark of this file
	}
	reached := mark == nil || *mark == at
	var lines []line
	for n := 2; ; n++ {
		rest := data[at.size:]
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 && isCut(rest) {
			break
		}
		l, sum, err := decodeLine(rest[:end], at.sum)
		if err != nil {
			return nil, place{}, fmt.Errorf("line %d: %w", n, err)
		}
		lines = append(lines, l)
		at.size, at.sum = at.size+int64(end), sum
		reached = reached || *mark == at
	}
	if !reached {
		return nil, place{}, fmt.Errorf("%w: it was cut off, or changed: it had %d bytes", ErrCorrupt, mark.size)
	}
	return lines, at, nil
}

// isCut reports whether text is only the beginning of a line, as after a crash. Zero bytes
// at the end are ignored, since some file systems append zeros in a crash.
func isCut(text []byte) bool {
	text = bytes.TrimRight(text, "\x00")
	head, _, _ := bytes.Cut(text, []byte("{"))
	fields := bytes.Fields(head)
	if len(fields) != 2 {
		return true
	}
	length, _ := strconv.Atoi(string(fields[1])) // without a number, length is 0, so a line with JSON is damaged, not cut
	return len(text) <= len(head)+length
}
