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
const knownSchemes = "Fingerprint.Known"

// Means reports whether an option of idem.Options, or of its Fingerprint, is part of a
// meaning. Secrets are not: a record names the one that it needs.
func Means(option string) bool {
	return option != "Fingerprint.Secrets" && (ofScope(option) || strings.HasPrefix(option, "Fingerprint"))
}

// ofScope reports whether an option decides to which operation a key belongs.
func ofScope(option string) bool {
	return slices.Contains([]string{"Namespace", "Scope", "ScopeRoute", "MismatchIsNew", "OneScope"}, option)
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
