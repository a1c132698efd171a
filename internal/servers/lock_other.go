//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package servers

import "context"

// lock does nothing on systems without flock. If two processes install at once, both
// download, and the one that renames its folder earlier wins.
func lock(context.Context, string) (unlock func(), err error) {
	return func() {}, nil
}
