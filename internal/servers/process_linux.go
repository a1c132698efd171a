package servers

import "syscall"

// childAttr makes the child end with this process, even if this process is killed,
// and keeps the terminal's interrupts from the child, since the users of a server
// must end before the server.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
