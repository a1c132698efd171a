//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package client

// lockFile does nothing where there is no flock: see [OpenJournal].
func lockFile(string) (unlock func() error, err error) {
	return func() error { return nil }, nil
}
