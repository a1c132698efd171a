//go:build !linux

package lambdarun

import "syscall"

// sandboxAttr has no effect on this system. If this program is killed, its Runtime APIs are
// gone, so a sandbox ends at its next call of its Runtime API.
func sandboxAttr() *syscall.SysProcAttr { return nil }
