package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
)

// magic begins a journal's file, and tells its version. The file comes into
// being with it, so one without is something else and must not be overwritten.
const magic = "samekey operations 1\n"

// line is one line of a journal's file: the state of one operation. The last
// line of an operation counts. In the file it is a checksum, a space, JSON and
// a newline, so that a line that a crash cut off is known as such.
type line struct {
	Operation   string    `json:"op"`
	Done        bool      `json:"done,omitempty"` // forgotten: the rest is empty
	Key         string    `json:"key,omitempty"`
	Fingerprint string    `json:"fp,omitempty"`
	Created     time.Time `json:"created,omitzero"`
	Expires     time.Time `json:"expires,omitzero"`
	Answered    time.Time `json:"answered,omitzero"`
	Status      int       `json:"status,omitempty"`
}

// errTorn is a line that was not wholly written.
var errTorn = errors.New("torn line")

// lineOf is the line that stores e.
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

func (l line) encode() ([]byte, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encoding the entry: %w", err) // a time beyond the year 9999
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(text), text), nil
}

// decodeLine reads a line with its newline.
func decodeLine(b []byte) (line, error) {
	b, whole := bytes.CutSuffix(b, []byte("\n"))
	sum, text, found := bytes.Cut(b, []byte(" "))
	if !whole || !found || len(sum) != 8 {
		return line{}, errTorn
	}
	if want, err := strconv.ParseUint(string(sum), 16, 32); err != nil || uint32(want) != crc32.ChecksumIEEE(text) {
		return line{}, errTorn
	}
	var l line
	switch err := json.Unmarshal(text, &l); {
	case err != nil:
		return line{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	case l.Operation == "" || !l.Done && (l.Key == "" || l.Expires.IsZero()):
		return line{}, fmt.Errorf("%w: a line lacks fields", ErrCorrupt)
	}
	return l, nil
}

// decodeFile reads a journal's file. What a crash left of its last line is
// passed over: nothing was sent for it. A bad line before others is not the mark
// of a crash, and forgetting a key in silence could do something twice.
func decodeFile(data []byte) ([]line, error) {
	if len(data) == 0 {
		return nil, nil // a new file, made by somebody else
	}
	data, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, fmt.Errorf("%w: not a journal of this version", ErrCorrupt)
	}
	var lines []line
	torn := 0
	n := 1
	for text := range bytes.Lines(data) {
		if n++; torn != 0 {
			return nil, fmt.Errorf("%w: line %d", ErrCorrupt, torn)
		}
		switch l, err := decodeLine(text); {
		case errors.Is(err, errTorn):
			torn = n
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		default:
			lines = append(lines, l)
		}
	}
	return lines, nil
}
