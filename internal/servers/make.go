package servers

import "strings"

// OfMake reports whether a variable, NAME=VALUE, is what a make tells the makes
// below it: its flags, and that they are below one, for which they print the
// directories that they enter and leave.
func OfMake(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
}
