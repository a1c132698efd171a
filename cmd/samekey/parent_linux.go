package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// interrupted(pid) reports whether a process, such as make, is dying of a signal. When
// make gets a signal, it blocks the signal, restores the signal's default action, and
// waits for its commands. A process that blocks a signal for another reason usually still
// has a handler for the signal.
func interrupted(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && dying(status)
}

// dying(status) reports whether a termination signal is blocked and has the default action.
func dying(status []byte) bool {
	masks := make(map[string]uint64)
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if strings.HasPrefix(name, "Sig") {
			masks[name], _ = strconv.ParseUint(strings.TrimSpace(value), 16, 64) // the value of SigQ is not a mask: ignore the error
		}
	}
	const ends = 1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGTERM-1)
	return masks["SigBlk"]&^masks["SigCgt"]&^masks["SigIgn"]&ends != 0
}
