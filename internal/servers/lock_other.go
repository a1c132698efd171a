//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package servers

import "context"

// lock does nothing on systems without flock. If two first runs happen at once, both
// download, and the first rename wins.
func lock(context.Context, string) (unlock func(), err error) {
	return func() {}, nil
}
