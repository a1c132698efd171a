package plain_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
)

// Characters that break lines, command terminals, or hide or turn text are replaced.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain äöü 日本":                 "plain äöü 日本",
		"a\nb\tc\x1b[2Jd\x7f\u0085":    "a b c [2Jd  ",
		"\u202eevil\u2066\u200b\ufeff": " evil   ",
		" ~\x1f\u0080\u00a0":           " ~  \u00a0",
		"\u2028\u061c\U000e0041\u00ad": "    ",
		"bad \xff utf8 \x9b":           "bad \ufffd utf8 \ufffd",
	} {
		if got := plain.Line(in); got != want {
			t.Errorf("%q is printed as %q, want %q", in, got, want)
		}
	}
	if got, want := plain.Lines("a\rb\nc\x1b"), "a b\n  c "; got != want {
		t.Errorf("lines %q, want %q", got, want)
	}
	type name string
	got := plain.Args([]any{1, "a\n", name("b\x1b"), errors.New("c\r"), true, 1.5})
	if want := []any{1, "a ", "b ", "c ", true, 1.5}; !cmp.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A write may end within a character.
func TestWriter(t *testing.T) {
	t.Parallel()
	in, want := "a\tb\n\x1b[2J\u009b1m日本\u202e\r\xff!", "a\tb\n [2J 1m日本  \ufffd!"
	for size := 1; size < 6; size++ {
		var out strings.Builder
		w := &plain.Writer{W: &out}
		for rest := in; rest != ""; rest = rest[min(size, len(rest)):] {
			if n, err := w.Write([]byte(rest[:min(size, len(rest))])); err != nil || n != min(size, len(rest)) {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if out.String() != want {
			t.Errorf("by %d: %q, want %q", size, out.String(), want)
		}
	}
}

// A character is written as soon as it is complete, and a failed write is an error.
func TestWriterHoldsNothingBack(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := &plain.Writer{W: &out}
	for _, s := range []struct{ in, want string }{
		{"a\xf0\x9f\x98", "a"}, {"\x80b", "a😀b"}, {"ü", "a😀bü"}, {"\xff", "a😀bü\ufffd"}, {"\xe6", "a😀bü\ufffd"}, {"\xe6!", "a😀bü\ufffd\ufffd\ufffd!"},
	} {
		if _, err := w.Write([]byte(s.in)); err != nil || out.String() != s.want {
			t.Errorf("after %q: %q, %v, want %q", s.in, out.String(), err, s.want)
		}
	}
	if n, err := (&plain.Writer{W: shut{}}).Write([]byte("a")); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}

// shut refuses every write.
type shut struct{}

func (shut) Write([]byte) (int, error) { return 0, errors.New("shut") }

func TestJSON(t *testing.T) {
	t.Parallel()
	in := map[string]string{"a": "\x1b[2J\u009b\u202e\U000e0041\r\b\f\n\t\"\\u001b\\\u2028日\x7f/"}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		got  []byte
		want string
	}{
		"escaped": {plain.EscapedJSON(raw), in["a"]},
		"plain":   {plain.PageJSON(raw), " [2J      \n\t\"\\u001b\\ 日 /"},
	} {
		var got map[string]string
		if err := json.Unmarshal(tt.got, &got); err != nil || got["a"] != tt.want {
			t.Errorf("%s: %q, want %q (%v)", name, got["a"], tt.want, err)
		}
		if s := string(tt.got); plain.Line(s) != s {
			t.Errorf("%s: %q", name, s)
		}
	}
	for in, want := range map[string]string{`"\u000a\u000a1\u0009"`: "\n\n1\t", `"\u00411\u000b1\\u000b"`: "A1 1\\u000b", `"\n\t\/\u000bf"`: "\n\t/ f"} {
		var got string
		if err := json.Unmarshal(plain.PageJSON([]byte(in)), &got); err != nil || got != want {
			t.Errorf("%s is shown as %q, want %q (%v)", in, got, want, err)
		}
	}
	if got := string(plain.EscapedJSON([]byte("[\n\t\"\xff\"]\n"))); got != "[\n\t\"\ufffd\"]\n" {
		t.Errorf("%q", got)
	}
}

// A shell reads each quoted word unchanged.
func TestQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"v1#rides#VgytXNOp-_0": "v1#rides#VgytXNOp-_0", "1.0": "1.0", "--not-made": "--not-made", "": "''", "#a": "'#a'", "~": "'~'", "~jane": "'~jane'", "a~": "'a~'", "straße": "straße",
		"a b": "'a b'", "it's": `'it'\''s'`, "$(id)": "'$(id)'", "`id`;": "'`id`;'", "a*?[b]{1,2}": "'a*?[b]{1,2}'", "!x": "'!x'", `a\b`: `'a\b'`, "<>|&": "'<>|&'",
		"a\x1b[2J'\\1": `$'a\033[2J\'\\1'`, "\n9": `$'\0129'`, "\u202eü": `$'\342\200\256\303\274'`, "\xff": `$'\377'`, "\x1b !\x7f~": `$'\033 !\177~'`,
	} {
		if got := plain.Quote(word); got != want {
			t.Errorf("%q is quoted as %s, want %s", word, got, want)
		}
		out, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+plain.Command(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("a shell takes %q for %q, %v", word, out, err)
		}
	}
}
