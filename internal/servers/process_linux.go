package servers

import "syscall"

// childAttr makes the kernel kill the child when this process ends in any way. It also keeps
// Ctrl-C in the terminal from reaching the child, since a server must end after its users.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
