package servers

import "strings"

// OfMake reports whether make sets a variable, NAME=VALUE, for nested makes: the flags and
// level of make, which make nested makes print directories.
func OfMake(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
}
