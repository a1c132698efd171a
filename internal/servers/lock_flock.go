//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock takes the lock of the file at path. While another process holds the lock, the function
// waits, at most until ctx ends. The kernel releases the lock of a process that dies, so no
// stale lock can remain.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	// Closing the file frees the lock.
	unlock = func() { _ = f.Close() }
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			unlock()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			unlock()
			return nil, fmt.Errorf("waiting for another process that installs: %w", ctx.Err())
		case <-tick.C:
		}
	}
}
