package servers

import "strings"

// OfMake reports whether variable (NAME=VALUE) holds the flags or the level that make
// passes to nested makes. With such a variable a nested make prints directories.
func OfMake(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
}
