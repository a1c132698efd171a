package dynamotest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What DynamoDB Local listens on, seen without the code that checks it.
func TestTheDatabaseListensOnLoopbackOnly(t *testing.T) {
	db := findOwn(t)
	u, err := url.Parse(db.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	suffix := ":" + strings.ToUpper(strconv.FormatUint(port+0x10000, 16)[1:])
	var got []string
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
				got = append(got, f[1])
			}
		}
	}
	if want := []string{"0100007F" + suffix}; runtime.GOARCH != "s390x" && !cmp.Equal(got, want) {
		t.Errorf("listening addresses: got %v, want %v", got, want)
	}
}

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
		{"another process answers", "", []string{"127.0.0.1:9"}, errPortTaken.Error()},
		{"nothing", "1", nil, errPortTaken.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(envAllInterfaces, tt.allow)
			var addrs []netip.AddrPort
			for _, a := range tt.addrs {
				addrs = append(addrs, netip.MustParseAddrPort(a))
			}
			err := judgeListeners(addrs, 8000)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestShimIsCompiledOnce(t *testing.T) {
	cc, err := compiler()
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	first, err := loopbackEnv(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	// From here on every compiler fails.
	t.Setenv("PATH", commands(t, map[string]string{filepath.Base(cc): "echo unexpected token; exit 1"}))
	t.Setenv("LD_PRELOAD", "")
	again, err := loopbackEnv(t.Context(), dir)
	if err != nil || !cmp.Equal(first, again) {
		t.Errorf("second time: got %v, %v; want %v", again, err, first)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || first[0] != "LD_PRELOAD=./"+entries[0].Name() {
		t.Errorf("folder has %v (%v), want only what %v names", entries, err, first)
	}
	_, err = loopbackEnv(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "unexpected token") {
		t.Errorf("a failing compiler: got %v, want what it said", err)
	}
	t.Setenv(envAllInterfaces, "1")
	if env, err := loopbackEnv(t.Context(), t.TempDir()); err != nil || env != nil {
		t.Errorf("a failing compiler and every interface allowed: got %v, %v; want nothing", env, err)
	}
}

// The kernel's promise to end a child with its parent is tied to a thread.
func TestAProcessOutlivesTheThreadThatStartedIt(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHelper+"=find", envEndpoint+"=http://127.0.0.1:1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	type result struct {
		p   *process
		err error
		tid int
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		p, err := startProcess(cmd)
		started <- result{p, err, syscall.Gettid()}
	}()
	r := <-started
	if r.err != nil {
		t.Fatal(r.err)
	}
	defer r.p.kill()
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
	<-r.p.done
	if r.p.err != nil {
		t.Errorf("the child ended by %v, want in order", r.p.err)
	}
}

func TestTheDatabaseEndsWithAKilledTestProcess(t *testing.T) {
	if err := findOwn(t).Close(); err != nil { // or skip
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHelper+"=find", envEndpoint+"=")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	endpoint := strings.TrimSpace(line)
	if endpoint == "" {
		_ = cmd.Wait()
		t.Fatal("the helper printed no endpoint")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	waitEnd(t, &DB{Endpoint: endpoint})

	// A later run would remove what it left; this one needn't leave it.
	root, err := cacheRoot()
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(ddbLocal().dir(root), "tmp-"+strconv.Itoa(cmd.Process.Pid)+"-*"))
	if err != nil || len(left) > 1 {
		t.Errorf("the helper left %v (%v), want one folder at most", left, err)
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
}
