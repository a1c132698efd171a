//go:build !linux

package servers

// checkListeners can't read a process's sockets on this system.
func (s Server) checkListeners(int, int) error { return nil }
