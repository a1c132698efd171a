//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package servers

import "context"

// lock does nothing on systems without flock: two first runs at once then both download,
// and the run that renames first wins.
func lock(context.Context, string) (unlock func(), err error) {
	return func() {}, nil
}
