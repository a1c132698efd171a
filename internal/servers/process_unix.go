//go:build unix && !linux

package servers

import "syscall"

// childAttr keeps Ctrl-C in the terminal from reaching the child, since a server must end
// after its users.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
