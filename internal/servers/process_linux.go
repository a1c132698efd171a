package servers

import "syscall"

// childAttr makes the child end with this process, even if this process is killed. It
// also keeps the terminal's interrupts from the child, since a server must end after its
// users.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
