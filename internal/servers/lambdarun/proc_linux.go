package lambdarun

import "syscall"

// sandboxAttr keeps a process from outliving this one, even when this one is
// killed, and from getting the terminal's Ctrl-C, which is for the parent to
// handle. The kernel ties Pdeathsig to the thread that forked, so the process
// has to be started from a locked thread that lives as long as it does.
func sandboxAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
