//go:build unix && !linux

package servers

import "syscall"

// childAttr keeps the terminal's interrupts from the child, since a server must end after
// its users.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
