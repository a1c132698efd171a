//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package client

import "os"

// lockFile locks nothing on systems without flock: see [OpenJournal].
func lockFile(path string) (f *os.File, unlock func() error, err error) {
	f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}
