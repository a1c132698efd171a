//go:build unix && !linux

package servers

import "syscall"

// childAttr keeps an interrupt typed at the terminal from the child: whoever
// uses the server ends first, then we end the server.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
