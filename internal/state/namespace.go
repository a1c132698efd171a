package state

import "strings"

// Namespace returns the namespace in the PK of a record; "" if the PK isn't Samekey's.
func Namespace(pk string) string {
	_, rest, _ := strings.Cut(pk, "#")
	namespace, _, _ := strings.Cut(rest, "#")
	if !IsNamespace(namespace) { // somebody wrote this PK by hand
		return ""
	}
	return namespace
}

// IsNamespace reports whether an engine can have the namespace s. "" is a valid namespace.
func IsNamespace(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return len(s) <= 64 && strings.Trim(s, letters) == ""
}
