//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package client

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile locks the lock file at path. If the file is already locked, lockFile returns
// [ErrLocked]. The kernel releases the lock when the process dies, so no stale lock can
// remain.
func lockFile(path string) (f *os.File, unlock func() error, err error) {
	f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		// Unlock before closing: closing alone would not release the lock while a starting
		// child process has a copy of the descriptor.
		return f, func() error { return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close()) }, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
}
