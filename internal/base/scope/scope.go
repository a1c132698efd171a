// Package scope writes and reads the text of a scope, the owner of a key.
//
// A scope is the kind of a caller, a ":" and the caller's subject. A tenant goes in front,
// as "tenant:NAME|". An operation goes in front of the tenant, as "operation:NAME|".
package scope

import (
	"net/url"
	"strings"

	"github.com/samekey/samekey/idem/store"
)

// Kinds of callers that no source of events verifies. Adapters can't use these kinds.
const (
	Program = "program" // callers that the program names: idem.Options.Scope, idem.Request.Scope
	Source  = "source"  // a source of events as the caller: idem.Request.Source
	One     = "one"     // all callers together: idem.OneScope
)

const (
	operationPart = "operation"
	tenantPart    = "tenant"
)

// Reserved reports whether adapters must not use the kind. With a reserved kind, the scope of
// one caller could look like the scope of another.
func Reserved(kind string) bool {
	switch kind {
	case "", Program, Source, One, operationPart, tenantPart:
		return true
	}
	return strings.ContainsAny(kind, ":|")
}

// Escape encodes each "|" in part. So the first "|" of a text that begins with an
// escaped part is the end of the part.
func Escape(part string) string {
	return strings.ReplaceAll(strings.ReplaceAll(part, "%", "%25"), "|", "%7C")
}

// Unescape is the inverse of Escape.
func Unescape(part string) string {
	return strings.ReplaceAll(strings.ReplaceAll(part, "%7C", "|"), "%25", "%")
}

// Append appends a scope to b. An empty operation or tenant adds nothing.
func Append(b []byte, operation, tenant string, caller store.Identity) []byte {
	for _, part := range [...]struct{ kind, name string }{{operationPart, operation}, {tenantPart, tenant}} {
		if part.name != "" {
			b = append(append(b, part.kind...), ':')
			b = append(append(b, Escape(part.name)...), '|')
		}
	}
	b = append(append(b, caller.Kind...), ':')
	return append(b, caller.Subject...)
}

// Parse is the inverse of Append. ok is false for a text that is no scope.
func Parse(text string) (operation, tenant string, caller store.Identity, ok bool) {
	operation, text = cutPart(text, operationPart)
	tenant, text = cutPart(text, tenantPart)
	caller.Kind, caller.Subject, ok = strings.Cut(text, ":")
	return operation, tenant, caller, ok && caller.Kind != ""
}

// cutPart splits off the first part of text if that part has this name.
func cutPart(text, name string) (value, rest string) {
	after, ok := strings.CutPrefix(text, name+":")
	if !ok {
		return "", text
	}
	value, rest, ok = strings.Cut(after, "|")
	if !ok {
		return "", text
	}
	return Unescape(value), rest
}

// Path gives all spellings of a path the same form: it decodes every segment, if
// possible, and encodes it again. Spellings differ because a retry may write the path
// in another way, and because only HTTP APIs decode the path in their events.
func Path(path string) string {
	if path == "" {
		return "/"
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if u, err := url.PathUnescape(s); err == nil {
			s = u
		}
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}
