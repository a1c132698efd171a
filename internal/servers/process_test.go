package servers

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

func TestKillWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHelper+"=wait")
	in, err := cmd.StdinPipe() // open, so the helper goes on
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := StartProcess(cmd)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		select {
		case <-p.Done():
		default:
			t.Error("Kill returned before the process had ended")
		}
	}
}

func TestStartProcessReturnsTheErrorOfTheStart(t *testing.T) {
	t.Parallel()
	if _, err := StartProcess(exec.Command(t.TempDir() + "/missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

func TestHeadTailKeepsBothEnds(t *testing.T) {
	t.Parallel()
	var h HeadTail
	for i := range 5000 {
		if _, err := io.WriteString(&h, strconv.Itoa(i)+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	got := h.String()
	if !strings.HasPrefix(got, "0\n1\n") || !strings.HasSuffix(got, "4998\n4999\n") || len(got) != 2*headTailSize {
		t.Errorf("got %d bytes, %q … %q", len(got), got[:8], got[len(got)-12:])
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	in := "Exception in thread \"main\" X\n\tat a.b(C.java:1)\n\n  Caused by: Y\r\n\t... 16 more\nSLF4J: noise\n"
	if got, want := oneLine(in), `Exception in thread "main" X; Caused by: Y`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := oneLine(strings.Repeat("ä", 1000)); len(got) > 810 || !strings.HasSuffix(got, "ä …") {
		t.Errorf("a long line: got %d bytes, ending in %q", len(got), got[len(got)-8:])
	}
}
