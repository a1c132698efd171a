package lambdarun

import "syscall"

// sandboxAttr makes a process end with this process, even if this process is killed,
// and keeps the terminal's Ctrl-C from it, which the parent handles. The kernel ties
// Pdeathsig to the thread that forked, so start the process from a locked thread that
// lives as long as the process.
func sandboxAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
