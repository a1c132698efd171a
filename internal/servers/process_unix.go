//go:build unix && !linux

package servers

import "syscall"

// childAttr keeps the terminal's interrupts from the child, since the users of a
// server must end before the server.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
