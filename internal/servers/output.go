package servers

import (
	"strings"
	"sync"
)

// HeadTail is an io.Writer that keeps the first and the last bytes written to it,
// because the cause of an error is at one of these ends. The cause is in the first line
// of a Java exception, and in the last line of other output. The zero value is ready,
// and safe for concurrent use.
type HeadTail struct {
	mu         sync.Mutex
	head, tail []byte
}

const headTailSize = 4 << 10

// Write never fails.
func (h *HeadTail) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(b)
	k := min(headTailSize-len(h.head), n)
	h.head = append(h.head, b[:k]...)
	h.tail = append(h.tail, b[k:]...)
	if extra := len(h.tail) - headTailSize; extra > 0 {
		h.tail = append(h.tail[:0], h.tail[extra:]...)
	}
	return n, nil
}

// String returns the first bytes, followed by the last bytes.
func (h *HeadTail) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.head) + string(h.tail)
}

// oneLine returns a program's output without stack frames, as one line of limited length.
func oneLine(s string) string {
	var kept []string
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "at ") || strings.HasPrefix(line, "... ") || strings.HasPrefix(line, "SLF4J:") {
			continue
		}
		kept = append(kept, line)
	}
	const limit = 800
	if s = strings.Join(kept, "; "); len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + " …"
	}
	return s
}
