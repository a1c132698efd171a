package lambdarun

import "syscall"

// sandboxAttr makes a process end with this process, even if this process is killed. It
// also keeps the terminal's Ctrl-C from the process, since the parent handles Ctrl-C. The
// kernel ties Pdeathsig to the thread that forked, so start the process from a locked
// thread that lives as long as the process.
func sandboxAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
