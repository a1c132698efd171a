//go:build !linux

package lambdarun

import "syscall"

// sandboxAttr has no effect on this system: if this process is killed, a sandbox ends
// at its next call of the missing Runtime API.
func sandboxAttr() *syscall.SysProcAttr { return nil }
