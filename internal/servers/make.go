package servers

import "strings"

// OfMake reports whether make sets variable (NAME=VALUE) for nested makes: its flags or its level.
// With these variables a nested make prints directories.
func OfMake(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
}
