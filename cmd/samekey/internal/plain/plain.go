// Package plain makes texts from a table harmless for a terminal, the page of samekey
// ui and a shell. Anyone may have written these texts.
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

// hidden tells whether a character ends a line, controls a terminal, changes the direction
// of a text or is invisible.
func hidden(c rune) bool {
	if c < 0x7f {
		return c < ' '
	}
	return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Line returns s as one line: hidden characters become spaces.
func Line(s string) string {
	return strings.Map(func(c rune) rune {
		if hidden(c) {
			return ' '
		}
		return c
	}, s)
}

// Args applies the function Line to the text of each argument, errors included. Arguments of
// the types bool, int, int64 and float64 stay as they are.
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

// Lines applies Line to each line of s, and indents all lines but the first, so that a
// text can't imitate lines of this program.
func Lines(s string) string {
	all := strings.Split(s, "\n")
	for i := range all {
		all[i] = Line(all[i])
	}
	return strings.Join(all, "\n  ")
}

// Writer applies the function Text to the output for a terminal. The writer is safe for
// concurrent use.
type Writer struct {
	W    io.Writer
	mu   sync.Mutex
	rest []byte // an incomplete character at the end of the last write
}

func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Concat(w.rest, p)
	whole := len(all)
	for i := max(0, whole-utf8.UTFMax+1); i < whole; i++ {
		if !utf8.FullRune(all[i:]) {
			whole = i // leave the incomplete character for the next write
		}
	}
	w.rest = append([]byte(nil), all[whole:]...)
	if _, err := io.WriteString(w.W, Text(string(all[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Text replaces hidden characters, except tabs and newlines, by spaces.
func Text(s string) string {
	return strings.Map(func(c rune) rune {
		if hidden(c) && c != '\n' && c != '\t' {
			return ' '
		}
		return c
	}, s)
}

// EscapedJSON escapes the hidden characters in the strings of JSON. Programs that decode
// the JSON get the same values.
func EscapedJSON(raw []byte) []byte {
	return eachRune(raw, func(out []byte, c rune) []byte {
		if !hidden(c) || c == '\n' || c == '\t' { // JSON has newlines and tabs only between values, because strings escape them
			return utf8.AppendRune(out, c)
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
		return out
	})
}

// PageJSON prepares JSON from encoding/json for a page that shows the JSON's strings. In the
// strings, PageJSON replaces hidden characters, except tabs and newlines, by spaces.
func PageJSON(raw []byte) []byte {
	escaped := 0 // remaining bytes of an escape
	return eachRune(raw, func(out []byte, c rune) []byte {
		if escaped > 0 {
			if escaped--; escaped == 0 {
				return plainEscape(utf8.AppendRune(out, c))
			}
			if escaped == 4 && c != 'u' { // an escape such as \n
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

// plainEscape replaces the escape at the end of out by a space, if Text would replace
// the escaped character.
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

// eachRune calls add for each character of raw, and returns the resulting text. Bytes
// that aren't UTF-8 become U+FFFD.
func eachRune(raw []byte, add func(out []byte, c rune) []byte) []byte {
	out := make([]byte, 0, len(raw))
	for _, c := range string(raw) {
		out = add(out, c)
	}
	return out
}

// Command returns a command line for a shell. Words that a shell would interpret are
// quoted. Flags such as --result and placeholders such as TEXT are never quoted.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Quote returns s as one word of a shell. If s is empty or a shell would interpret s,
// the word is in single quotes. If s has hidden characters or isn't UTF-8, the word has
// the form $'…', which bash, zsh and POSIX.1-2024 know.
func Quote(s string) string {
	switch {
	case strings.ContainsFunc(s, hidden) || !utf8.ValidString(s):
		var b strings.Builder
		for i := range len(s) {
			switch c := s[i]; {
			case c == '\'' || c == '\\':
				b.WriteString(`\` + string(c))
			case c < ' ' || c >= 0x7f:
				// three digits, so that the escape doesn't include a digit that follows
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

// special tells whether a shell may interpret a character. A # within a word is not
// special.
func special(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("@%+=:,./-_#", c)
}

// Time formats a time for a sentence.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
