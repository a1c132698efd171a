package servers

import "strings"

// OfMake reports whether variable, as NAME=VALUE, is one that make sets for nested makes: its flags
// or its level. These variables make a nested make print directories.
func OfMake(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
}
