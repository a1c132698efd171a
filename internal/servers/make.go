package servers

import "strings"

// OfMake reports whether variable (NAME=VALUE) is one that make sets for nested makes.
// A make that gets such a variable takes itself for nested, and prints the names of the
// folders that it enters.
func OfMake(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
}
