package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// logs passes the output of several writers to one writer, in whole lines.
type logs struct {
	mu      sync.Mutex
	w       io.Writer
	metrics bool // also write the functions' metrics
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// logs.logger returns a logger for the stack's own messages.
func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l.prefixed("samekey"), &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey && a.Value.String() == "INFO") {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// logs.says returns a function that writes plain lines: no level, no message key, no
// attributes.
func (l *logs) says() func(format string, args ...any) {
	w := l.prefixed("samekey")
	return func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
}

// logs.prefixed returns a writer that puts a name before each line. The writer leaves
// out lines of metrics, unless l.metrics is set. It buffers an incomplete line, up to
// 64 KB.
func (l *logs) prefixed(name string) io.Writer {
	return &prefixWriter{logs: l, prefix: name + " | "}
}

type prefixWriter struct {
	logs   *logs
	prefix string
	mu     sync.Mutex
	rest   []byte
}

const maxLine = 64 << 10

func (p *prefixWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out bytes.Buffer
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 && len(p.rest) < maxLine {
			break
		}
		if i < 0 {
			i = len(p.rest)
		}
		if line := p.rest[:i]; p.logs.metrics || !isMetrics(line) {
			out.WriteString(p.prefix)
			out.Write(line)
			out.WriteByte('\n')
		}
		p.rest = p.rest[min(i+1, len(p.rest)):]
	}
	if out.Len() > 0 {
		if _, err := p.logs.Write(out.Bytes()); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// isMetrics reports whether a line has CloudWatch's embedded metric format.
func isMetrics(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`"_aws"`)) {
		return false
	}
	var metrics struct {
		AWS *struct{ CloudWatchMetrics []any } `json:"_aws"`
	}
	return json.Unmarshal(line, &metrics) == nil && metrics.AWS != nil && metrics.AWS.CloudWatchMetrics != nil
}
