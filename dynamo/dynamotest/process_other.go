//go:build !unix

package dynamotest

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
