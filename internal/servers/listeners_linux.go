package servers

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// checkListeners checks the listening sockets of the process. If no socket is at port,
// checkListeners returns ErrPortTaken, because another process answers there. If a
// socket is not on loopback and s.AllInterfaces is false, checkListeners returns
// another error.
func (s Server) checkListeners(pid, port int) error {
	addrs, err := listeners(pid)
	if err != nil {
		if s.AllInterfaces {
			return nil
		}
		return fmt.Errorf("can't check what %s listens on: %w%s", s.Name, err, s.hint())
	}
	return s.judgeListeners(addrs, port)
}

func (s Server) judgeListeners(addrs []netip.AddrPort, port int) error {
	ours := false
	for _, a := range addrs {
		ours = ours || int(a.Port()) == port
		if !a.Addr().Unmap().IsLoopback() && !s.AllInterfaces {
			return fmt.Errorf("%s listens on %s%s", s.Name, a, s.hint())
		}
	}
	if !ours {
		return ErrPortTaken
	}
	return nil
}

func (s Server) hint() string {
	if s.AllInterfacesHint == "" {
		return ""
	}
	return ": " + s.AllInterfacesHint
}

// listeners returns the addresses on which the process listens.
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
		// a descriptor that was closed after ReadDir has no link
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

// parseProcNet returns the listening sockets in /proc/net/tcp or tcp6.
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

// parseProcAddr reads an address and a port such as "0100007F:1F90". The address consists
// of 32-bit words in the machine's byte order.
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
