//go:build !unix

package servers

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
