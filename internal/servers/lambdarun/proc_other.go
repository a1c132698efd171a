//go:build !linux

package lambdarun

import "syscall"

// sandboxAttr has no effect on this system. If this program is killed, a sandbox ends
// when it next calls its Runtime API, because the API is gone.
func sandboxAttr() *syscall.SysProcAttr { return nil }
