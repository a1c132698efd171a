package lambdarun

import "syscall"

// sandboxAttr makes a sandbox end when this program ends, even if this program is
// killed. It also keeps the terminal's Ctrl-C from the sandbox, since this program
// handles Ctrl-C. The kernel sends Pdeathsig when the thread that forked ends. So start
// the sandbox from a locked thread that lives as long as the sandbox.
func sandboxAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
