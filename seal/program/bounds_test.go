package program_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/samekey/samekey/seal/program"
)

// Of an answer 64 KB are read, and of what a program says to people 1 KB. A program that
// fails has no answer, whatever it printed.
func TestBoundsOfAnotherProgram(t *testing.T) {
	t.Parallel()
	if _, err := playing(t, "is long").Generate(t.Context()); err != nil {
		t.Errorf("what follows 64 KB counts: %v", err)
	}
	_, err := playing(t, "is long and dies").Generate(t.Context())
	if x, y := strings.Count(fmt.Sprint(err), "x"), strings.Count(fmt.Sprint(err), "y"); x < 900 || y < 1 || x+y > 1100 {
		t.Errorf("an error of %d and %d letters", x, y)
	}
	if _, err := playing(t, "fails late").Generate(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "exit status 3") {
		t.Errorf("after its answer the program failed: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := playing(t, "hangs").Generate(ctx); err == nil || strings.Contains(err.Error(), "answer") {
		t.Errorf("the caller has gone: %v", err)
	}
}

// A question has at most 64 KB.
func TestBoundsOfAQuestion(t *testing.T) {
	t.Parallel()
	for extra, good := range []bool{true, false} {
		question := `{"call":"open","keyId":"` + strings.Repeat("k", 64<<10-len(`{"call":"open","keyId":""}`)+extra) + `"}`
		var out bytes.Buffer
		if err := program.Serve(t.Context(), static("one"), strings.NewReader(question), &out); (err == nil) != good {
			t.Errorf("a question of %d bytes: %v", len(question), err)
		}
	}
}

// torn takes nothing.
type torn struct{}

var errTorn = errors.New("torn")

func (torn) Write([]byte) (int, error) { return 0, errTorn }

func TestAnswerThatCantBeWritten(t *testing.T) {
	t.Parallel()
	if err := program.Serve(t.Context(), static("one"), strings.NewReader(`{"call":"generate"}`), torn{}); !errors.Is(err, errTorn) {
		t.Errorf("Serve: %v", err)
	}
	if err := program.Refuse(torn{}, errTorn); !errors.Is(err, errTorn) {
		t.Errorf("Refuse: %v", err)
	}
}
