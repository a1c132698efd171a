package lock

import (
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// Engine is an engine of the program, and the options that decide what its keys mean.
type Engine struct {
	Package, Name string // Name is the function that makes the engine
	Pos           token.Position
	Meaning       Meaning
}

// Meaning is the options that decide what a key means, by their names, as far as they are
// in sight. Functions are hashes of their source.
type Meaning map[string]string

// Options of a Meaning that say which other meanings an engine knows.
const (
	knownSchemes = "Fingerprint.Known"
	former       = "Former" // "true" if its fields are in sight, as "Former.Scope"
)

// Means reports whether an option of idem.Options, or of its Fingerprint, is part of a
// meaning. Secrets are not: a record names the one that it needs.
func Means(option string) bool {
	return option != "Fingerprint.Secrets" && (ofScope(option) || strings.HasPrefix(option, "Fingerprint"))
}

// ofScope reports whether an option decides to which operation a key belongs.
func ofScope(option string) bool {
	return slices.Contains([]string{"Namespace", "MismatchIsNew"}, option) || ofCaller(option)
}

// ofCaller reports whether an option decides whose a key is, and on which route: what
// idem.Former changes.
func ofCaller(option string) bool {
	return slices.Contains([]string{"Scope", "ScopeRoute", "OneScope", "ACP", "UCP", former}, option) || strings.HasPrefix(option, former+".")
}

// scopes returns the scope under which an engine claims keys, and all those that it knows.
func (m Meaning) scopes() (claims string, knows []string) {
	text := func(prefix string) string {
		return strings.Join([]string{m[prefix+"Scope"], m[prefix+"ScopeRoute"], m[prefix+"OneScope"], m[prefix+"ACP"], m[prefix+"UCP"]}, "\n")
	}
	present := text("")
	switch m[former] {
	case "":
		return present, []string{present}
	case "true":
		knows = []string{present, text(former + ".")}
		if m[former+".Claims"] != "" {
			return knows[1], knows
		}
		return present, knows
	default: // not in sight
		return m[former], []string{present}
	}
}

// knowEachOther reports whether two releases find the records that the other one claims.
func knowEachOther(was, is Meaning) bool {
	before, knew := was.scopes()
	after, knows := is.scopes()
	return slices.Contains(knows, before) && slices.Contains(knew, after)
}

// compareEngines finds the engines whose keys mean something else than in the file. A
// change is survived if the former and the present program know both meanings.
func (f *File) compareEngines(now []Engine) (all []Change) {
	for _, is := range now {
		was, known := f.Engines[is.Package][is.Name]
		if !known {
			continue
		}
		add := func(d Danger, what string, names []string) {
			if len(names) > 0 {
				all = append(all, Change{Danger: d, Handler: is.Package + "." + is.Name, Pos: is.Pos, Message: fmt.Sprintf("%s of its engine is another: %s", what, list(names))})
			}
		}
		changed := changes(was, is.Meaning)
		if knowEachOther(was, is.Meaning) {
			changed = slices.DeleteFunc(changed, ofCaller)
		}
		isScope := ofScope
		if was["MismatchIsNew"] != "" || is.Meaning["MismatchIsNew"] != "" { // the fingerprint is part of the scope
			isScope = func(string) bool { return true }
		}
		add(New, "the scope", filter(changed, isScope))
		fingerprint := filter(changed, func(name string) bool { return !isScope(name) })
		renamed := !slices.Contains(fingerprint, "Fingerprint.Func") || slices.Contains(fingerprint, "Fingerprint.FuncName") // else records can't tell
		if was[knownSchemes] == "" || is.Meaning[knownSchemes] == "" || !renamed {
			add(Incomparable, "the fingerprint", fingerprint)
		}
	}
	return all
}

// changes lists the options that differ, but for those that only add a known meaning.
func changes(was, is Meaning) (names []string) {
	both := maps.Clone(was)
	if both == nil {
		both = make(Meaning)
	}
	maps.Copy(both, is)
	for name := range both {
		if was[name] != is[name] && name != knownSchemes {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func filter(names []string, keep func(string) bool) (some []string) {
	for _, name := range names {
		if keep(name) {
			some = append(some, name)
		}
	}
	return some
}
