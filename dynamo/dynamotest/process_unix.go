//go:build unix && !linux

package dynamotest

import "syscall"

// childAttr keeps an interrupt typed at the terminal from the child: whoever
// uses the database ends first, then we end the database.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
