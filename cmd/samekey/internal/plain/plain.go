// Package plain makes texts from a table, which may have come from anyone, harmless where
// people read them: on a terminal, on the page, and as an argument in a shell.
package plain

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// hidden reports whether a character ends a line, commands a terminal, turns the
// direction of a text or can't be seen.
func hidden(c rune) bool {
	if c < 0x7f {
		return c < ' '
	}
	return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Line returns s as one line: characters that are hidden become spaces.
func Line(s string) string {
	return strings.Map(func(c rune) rune {
		if hidden(c) {
			return ' '
		}
		return c
	}, s)
}

// Args is Line for values that fmt prints: errors, and whatever is a string
// or becomes one. Numbers and times stay as they are.
func Args(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case bool, int, int64, float64:
			out[i] = arg
		case string:
			out[i] = Line(v)
		default: // errors too
			out[i] = Line(fmt.Sprint(v))
		}
	}
	return out
}

// Lines returns s with its lines: characters that are hidden become spaces, and each line
// after the first is indented, so that none passes for a line of the program's own.
func Lines(s string) string {
	all := strings.Split(s, "\n")
	for i := range all {
		all[i] = Line(all[i])
	}
	return strings.Join(all, "\n  ")
}

// Writer is the last barrier before a terminal: whatever is written goes to W with spaces
// for hidden characters, all but tabs and the ends of lines. Goroutines may share it.
type Writer struct {
	W    io.Writer
	mu   sync.Mutex
	rest []byte // the begin of a character
}

func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Concat(w.rest, p)
	whole := len(all)
	for i := max(0, whole-utf8.UTFMax+1); i < whole; i++ {
		if !utf8.FullRune(all[i:]) {
			whole = i // and so the last one
		}
	}
	w.rest = append([]byte(nil), all[whole:]...)
	if _, err := io.WriteString(w.W, Text(string(all[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Text returns s with spaces for hidden characters, all but tabs and the ends of lines.
func Text(s string) string {
	return strings.Map(func(c rune) rune {
		if hidden(c) && c != '\n' && c != '\t' {
			return ' '
		}
		return c
	}, s)
}

// EscapedJSON returns JSON with escapes for hidden characters in its strings: the same
// values, for programs.
func EscapedJSON(raw []byte) []byte {
	return eachRune(raw, func(out []byte, c rune) []byte {
		if !hidden(c) || c == '\n' || c == '\t' { // these two stand between values only
			return utf8.AppendRune(out, c)
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
		return out
	})
}

// PageJSON returns JSON, as encoding/json encodes it, whose strings have spaces for
// hidden characters, all but tabs and the ends of lines: for a page, which shows them.
func PageJSON(raw []byte) []byte {
	escaped := 0 // bytes of an escape that are still to come
	return eachRune(raw, func(out []byte, c rune) []byte {
		if escaped > 0 {
			if escaped--; escaped == 0 {
				return plainEscape(utf8.AppendRune(out, c))
			}
			if escaped == 4 && c != 'u' { // \n and its like
				escaped = 0
				return plainEscape(utf8.AppendRune(out, c))
			}
			return utf8.AppendRune(out, c)
		}
		if c == '\\' {
			escaped = 5
		}
		return append(out, Text(string(c))...)
	})
}

// plainEscape returns out, which ends with an escape, with a space instead if the escape
// is a hidden character.
func plainEscape(out []byte) []byte {
	at := len(out) - 2
	if out[at] != '\\' {
		at = len(out) - 6
	}
	switch escape := string(out[at:]); escape {
	case `\r`, `\b`, `\f`:
		return append(out[:at], ' ')
	default:
		if unit, err := strconv.ParseUint(strings.TrimPrefix(escape, `\u`), 16, 32); err == nil {
			if c := rune(unit); hidden(c) && c != '\n' && c != '\t' {
				return append(out[:at], ' ')
			}
		}
	}
	return out
}

// eachRune builds a text of the characters of raw. Bytes that aren't UTF-8 become U+FFFD.
func eachRune(raw []byte, add func(out []byte, c rune) []byte) []byte {
	out := make([]byte, 0, len(raw))
	for _, c := range string(raw) {
		out = add(out, c)
	}
	return out
}

// Command returns a command line for a shell. Words in capitals and flags are the
// caller's own; everything is quoted that a shell would not take as it stands.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Quote returns s as one word of a shell, in single quotes if it needs them. A word with
// hidden characters has the form $'…', which bash, zsh and POSIX.1-2024 know.
func Quote(s string) string {
	switch {
	case strings.ContainsFunc(s, hidden) || !utf8.ValidString(s):
		var b strings.Builder
		for i := range len(s) {
			switch c := s[i]; {
			case c == '\'' || c == '\\':
				b.WriteString(`\` + string(c))
			case c < ' ' || c >= 0x7f:
				// Three digits: a longer number would take in what follows.
				fmt.Fprintf(&b, `\%03o`, c)
			default:
				b.WriteByte(c)
			}
		}
		return "$'" + b.String() + "'"
	case s == "" || s[0] == '#' || strings.ContainsFunc(s, special):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// special reports whether a shell may take a character for something else than itself.
// A # within a word is one.
func special(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("@%+=:,./-_#", c)
}

// Time is a time in a sentence.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
