package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
)

const full = "when the disk is full"

func init() {
	crashPoints[full] = func(j *client.FileJournal) {
		signal.Ignore(syscall.SIGXFSZ)
		begin := func(name string) {
			e := client.Entry{Operation: name, Key: "key of " + name, Created: time.Now(), Expires: time.Now().Add(time.Hour)}
			_, _, err := j.Begin(context.Background(), e)
			fmt.Println(name, errors.Is(err, syscall.EFBIG), err == nil)
		}
		room := func(bytes uint64) {
			var limit syscall.Rlimit
			err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit)
			if limit.Cur = bytes; bytes == 0 {
				limit.Cur = limit.Max
			}
			if err := errors.Join(err, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)); err != nil {
				fmt.Println(err)
			}
		}
		begin("a")
		info, err := os.Stat(os.Args[1])
		if err != nil {
			fmt.Println(err)
			return
		}
		room(uint64(info.Size()) + 20) // too little for a whole line
		begin("b")
		begin("b")
		room(0)
		begin("c")
		begin("b")
	}
}

// The kernel stops a write in the middle of a line: nothing is promised, no part
// of the line remains, and the journal works again once there is room.
func TestJournalOnAFullDisk(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	child := exec.CommandContext(t.Context(), os.Args[0], path)
	child.Env = append(os.Environ(), crashingClient+"="+full)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "a false true\nb true false\nb true false\nc false true\nb false true\n"
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(out), "\n")); diff != "" {
		t.Errorf("operation, no room, begun (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "key of a", "b": "key of b", "c": "key of c"}, keysIn(open(t, path))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
