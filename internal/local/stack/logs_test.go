package stack

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestLinesBeginWithAName(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &logs{w: &out}
	a, b := l.prefixed("A"), l.prefixed("B")
	fmt.Fprint(a, "one\ntw")
	fmt.Fprint(b, "other\n")
	fmt.Fprint(a, "o\n\n")
	if got, want := out.String(), "A | one\nB | other\nA | two\nA | \n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out.Reset()
	fmt.Fprint(a, strings.Repeat("x", maxLine+1)+"\n")
	if got, want := out.Len(), maxLine+1+len("A | \n"); got != want {
		t.Errorf("a line without an end: %d bytes, want %d", got, want)
	}
	const metrics = `{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"Samekey"}]},"App":"a","Claimed":1}` + "\n"
	out.Reset()
	fmt.Fprint(a, metrics+`{"said":"_aws"}`+"\n")
	l.metrics = true
	fmt.Fprint(a, metrics)
	if got, want := out.String(), `A | {"said":"_aws"}`+"\nA | "+metrics; got != want {
		t.Errorf("metrics: got %q, want %q", got, want)
	}
	out.Reset()
	l.logger().Info("hello", "n", 1)
	l.logger().Warn("oh")
	if got, want := out.String(), "samekey | msg=hello n=1\nsamekey | level=WARN msg=oh\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
