package servers

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestListenersFindsTheSocketsOfAProcess(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	got, err := listeners(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got, addr) {
		t.Errorf("got %v, want %v among them", got, addr)
	}
	// Another process has no part in it.
	got, err = listeners(os.Getppid())
	if err == nil && slices.Contains(got, addr) {
		t.Errorf("%v is counted as a socket of the parent", addr)
	}
}

func TestJudgeListeners(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, allow string
		addrs       []string
		want        string // part of the error; "" for none
	}{
		{"loopback", "", []string{"127.0.0.1:8000"}, ""},
		{"loopback of both kinds", "", []string{"127.0.0.1:8000", "[::1]:8000", "[::ffff:127.0.0.1]:9"}, ""},
		{"every interface", "", []string{"0.0.0.0:8000"}, "listens on 0.0.0.0:8000"},
		{"every interface, IPv6", "", []string{"127.0.0.1:8000", "[::]:8000"}, "listens on [::]:8000"},
		{"another port on one interface", "", []string{"127.0.0.1:8000", "192.0.2.1:9"}, "listens on 192.0.2.1:9"},
		{"every interface, allowed", "1", []string{"0.0.0.0:8000"}, ""},
		{"another process answers", "", []string{"127.0.0.1:9"}, ErrPortTaken.Error()},
		{"nothing", "1", nil, ErrPortTaken.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := Server{Name: "it", AllInterfaces: tt.allow == "1", AllInterfacesHint: "say so"}
			var addrs []netip.AddrPort
			for _, a := range tt.addrs {
				addrs = append(addrs, netip.MustParseAddrPort(a))
			}
			err := s.judgeListeners(addrs, 8000)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// The kernel's promise to end a child with its parent is tied to a thread.
func TestAProcessOutlivesTheThreadThatStartedIt(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHelper+"=wait")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	type result struct {
		p   *Process
		err error
		tid int
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		p, err := StartProcess(cmd)
		started <- result{p, err, syscall.Gettid()}
	}()
	r := <-started
	if r.err != nil {
		t.Fatal(r.err)
	}
	defer func() { _ = r.p.Kill() }()
	for {
		if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(r.tid)); errors.Is(err, os.ErrNotExist) || r.tid == os.Getpid() {
			break
		}
		runtime.Gosched()
	}
	// The child would have its signal by now. It ends in order when its input
	// does, and otherwise by the signal.
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.p.Err(); err != nil {
		t.Errorf("the child ended by %v, want in order", err)
	}
}
