//go:build !linux

package lambdarun

import "syscall"

// sandboxAttr has no effect on this system: if this process is killed, a sandbox ends when
// it next calls the Runtime API, which is gone.
func sandboxAttr() *syscall.SysProcAttr { return nil }
