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

	"github.com/google/go-cmp/cmp"
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

func TestParseProcNet(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH == "s390x" {
		t.Skip("the sample is of a little-endian machine")
	}
	const sample = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:497B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21721 1 0000000087a72261 100 0 0 10 0
   1: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1137 1 0000000025bf959d 100 0 0 10 0
   2: 0100007F:C3E2 0100007F:497B 06 00000000:00000000 03:0000176E 00000000     0        0 0 3 00000000d57fb665
   3: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1 0 100 0 0 10 0
   4: 0000000000000000FFFF00000100007F:1F91 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 8 1 0 100 0 0 10 0
`
	want := []string{"127.0.0.1:18811 21721", "0.0.0.0:2024 1137", "[::1]:8080 7", "[::ffff:127.0.0.1]:8081 8"}
	found, err := parseProcNet(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(found))
	for _, l := range found {
		got = append(got, l.addr.String()+" "+l.inode)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"0: 1 2 0A", "0: 0100:1F90 a 0A b c d e f 1", "0: XX:1 a 0A b c d e f 1", "0: 0100007F a 0A b c d e f 1"} {
		if got, err := parseProcNet(strings.NewReader("heading\n" + bad + "\n")); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
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
