package dynamotest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// DynamoDB Local listens on every interface and has no option against it. On
// Linux a shim of a few lines, preloaded into its process only, turns that
// bind into one to 127.0.0.1; what it really listens on is checked afterwards.

// canKeepLocal returns why DynamoDB Local can't be kept off the network here.
func canKeepLocal() error {
	if _, err := compiler(); err != nil && !allowed(envAllInterfaces) {
		return err
	}
	return nil
}

func compiler() (string, error) {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("DynamoDB Local listens on every interface, and the shim against it needs a C compiler: cc isn't in PATH: install one, or set %s=1 to let it listen", envAllInterfaces)
}

// loopbackEnv returns what to add to the environment of the process that runs
// in dir. It compiles the shim into dir on first use.
func loopbackEnv(ctx context.Context, dir string) ([]string, error) {
	name, err := compileShim(ctx, dir)
	if err != nil {
		if allowed(envAllInterfaces) {
			return nil, nil
		}
		return nil, err
	}
	preload := "./" + name // the loader splits at spaces and colons, so no absolute path
	if more := os.Getenv("LD_PRELOAD"); more != "" {
		preload += ":" + more
	}
	return []string{"LD_PRELOAD=" + preload}, nil
}

// compileShim returns the name of the shim in dir. The name holds what it was
// made of and for; the rename at the end makes it appear whole, however many
// processes do this at once.
func compileShim(ctx context.Context, dir string) (string, error) {
	src := localFile("bindlo.c")
	sum := sha256.Sum256(src)
	name := "bindlo-" + runtime.GOARCH + "-" + hex.EncodeToString(sum[:6]) + ".so"
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		return name, nil
	}
	cc, err := compiler()
	if err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(dir, "bindlo-tmp-")
	if err != nil {
		return "", fmt.Errorf("making a folder for the loopback shim: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := os.WriteFile(filepath.Join(tmp, "bindlo.c"), src, 0o600); err != nil {
		return "", fmt.Errorf("writing the loopback shim: %w", err)
	}
	cmd := exec.CommandContext(ctx, cc, "-shared", "-fPIC", "-O2", "-o", "bindlo.so", "bindlo.c", "-ldl")
	cmd.Dir = tmp
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the loopback shim: %w: %s", err, out)
	}
	if err := os.Rename(filepath.Join(tmp, "bindlo.so"), filepath.Join(dir, name)); err != nil {
		return "", fmt.Errorf("putting the loopback shim in its place: %w", err)
	}
	return name, nil
}

// checkListeners looks at what the process listens on. It returns errPortTaken
// if the process isn't the one that answers at port, and another error if any
// of its sockets can be reached from outside.
func checkListeners(pid, port int) error {
	addrs, err := listeners(pid)
	if err != nil {
		if allowed(envAllInterfaces) {
			return nil
		}
		return fmt.Errorf("can't check what DynamoDB Local listens on: %w: set %s=1 to do without the check", err, envAllInterfaces)
	}
	return judgeListeners(addrs, port)
}

func judgeListeners(addrs []netip.AddrPort, port int) error {
	ours := false
	for _, a := range addrs {
		ours = ours || int(a.Port()) == port
		if !a.Addr().Unmap().IsLoopback() && !allowed(envAllInterfaces) {
			return fmt.Errorf("DynamoDB Local listens on %s in spite of the loopback shim: set %s=1 to let it", a, envAllInterfaces)
		}
	}
	if !ours {
		return errPortTaken
	}
	return nil
}

// listeners returns the addresses that the process listens on.
func listeners(pid int) ([]netip.AddrPort, error) {
	inodes, err := socketInodes(pid)
	if err != nil {
		return nil, err
	}
	var addrs []netip.AddrPort
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "net", name))
		if errors.Is(err, os.ErrNotExist) && name == "tcp6" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		all, err := parseProcNet(f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			if inodes[l.inode] {
				addrs = append(addrs, l.addr)
			}
		}
	}
	return addrs, nil
}

func socketInodes(pid int) (map[string]bool, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	inodes := map[string]bool{}
	for _, e := range entries {
		// A descriptor closed since the listing has no link any more.
		link, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		if inode, ok := strings.CutPrefix(link, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes, nil
}

type listener struct {
	addr  netip.AddrPort
	inode string
}

// parseProcNet returns the listening sockets of a /proc/net/tcp or tcp6.
func parseProcNet(r io.Reader) ([]listener, error) {
	const stateListen = "0A"
	var found []listener
	sc := bufio.NewScanner(r)
	sc.Scan() // the heading
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 10 {
			return nil, fmt.Errorf("unexpected line %q", sc.Text())
		}
		if f[3] != stateListen {
			continue
		}
		addr, err := parseProcAddr(f[1])
		if err != nil {
			return nil, err
		}
		found = append(found, listener{addr, f[9]})
	}
	return found, sc.Err()
}

// parseProcAddr reads "0100007F:1F90": the address in words of 32 bits, each
// printed as the machine would read it from memory, and the port.
func parseProcAddr(s string) (netip.AddrPort, error) {
	host, port, ok := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	n, portErr := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || portErr != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("unexpected address %q", s)
	}
	for w := b; len(w) > 0; w = w[4:] {
		binary.NativeEndian.PutUint32(w, binary.BigEndian.Uint32(w))
	}
	addr, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("unexpected address %q", s)
	}
	return netip.AddrPortFrom(addr, uint16(n)), nil
}
