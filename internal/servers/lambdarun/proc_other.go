//go:build !linux

package lambdarun

import "syscall"

// sandboxAttr has nothing to offer here: if this process is killed, a sandbox
// ends when it next talks to its Runtime API and finds it gone.
func sandboxAttr() *syscall.SysProcAttr { return nil }
