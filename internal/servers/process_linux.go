package servers

import "syscall"

// childAttr ties the child's life to ours, even when we are killed, and keeps
// an interrupt typed at the terminal from it: whoever uses the server ends
// first, then we end the server.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
