//go:build !linux

package servers

// checkListeners can't look at a process's sockets here.
func (s Server) checkListeners(int, int) error { return nil }
