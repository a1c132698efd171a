package servers

import "strings"

// OfMake reports whether make sets a variable, NAME=VALUE, for nested makes: its
// flags and level, which make them print directories.
func OfMake(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
}
