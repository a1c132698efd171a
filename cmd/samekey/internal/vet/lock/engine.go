package lock

import (
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Engine is an engine of the program, with the options that decide what keys mean.
type Engine struct {
	Package, Name string // Name is the name of the function that makes the engine
	Pos           token.Position
	Meaning       Meaning
}

// Meaning holds the options that decide what a key means. It maps an option's name to
// the Go source of the option's value, or to "true" if the option has no value. If the
// source is long, or is a function with a known body, a hash replaces the source.
type Meaning map[string]string

// With these options, an engine also knows former or coming meanings of keys.
const (
	knownSchemes = "Fingerprint.Known"
	former       = "Former" // the value is "true" if the source shows the fields, such as "Former.Scope"
	formerPreset = "Former.Preset"
)

// Means reports whether a Meaning contains an option of idem.Options, or of a part of
// Options. A Meaning doesn't contain Fingerprint.Secrets, because each record names the
// secret that the record needs.
func Means(option string) bool {
	return option != "Fingerprint.Secrets" && (option == "Namespace" || ofCaller(option) || ofFingerprint(option))
}

// ofCaller reports whether an option decides the caller or the route of a key. Such an
// option can be changed safely with the help of idem.Former.
func ofCaller(option string) bool {
	return slices.Contains([]string{"Scope", "OneScope", "ACP", "UCP", former}, option) || strings.HasPrefix(option, former+".")
}

// Meaning.scopes returns the scope under which an engine claims keys, and all scopes
// that the engine knows.
func (m Meaning) scopes() (claims string, knows []string) {
	text := func(prefix, preset string) string {
		path := m[preset+"ACP"]+m[preset+"UCP"] != ""
		return strings.Join([]string{m[prefix+"Scope"], m[prefix+"OneScope"], strconv.FormatBool(path)}, "\n")
	}
	present := text("", "")
	switch m[former] {
	case "":
		return present, []string{present}
	case "true":
		preset := "" // the present preset
		if m[formerPreset] != "" {
			preset = former + "."
		}
		knows = []string{present, text(former+".", preset)}
		if m[former+".Claims"] != "" {
			return knows[1], knows
		}
		return present, knows
	default: // unknown
		return m[former], []string{present}
	}
}

// Meaning.fingerprint returns the options that decide the fingerprint of an engine's
// new records.
func (m Meaning) fingerprint() Meaning {
	prefix := ""
	if m[formerPreset] != "" && m[former+".Claims"] != "" {
		prefix = former + "."
	}
	parts := make(Meaning)
	for name, value := range m {
		if part, ok := strings.CutPrefix(name, prefix); ok && ofFingerprint(part) {
			parts[part] = value
		}
	}
	return parts
}

func ofFingerprint(option string) bool { return strings.HasPrefix(option, "Fingerprint") }

// knowEachOther reports whether each of two releases finds the records of the other.
func knowEachOther(was, is Meaning) bool {
	before, knew := was.scopes()
	after, knows := is.scopes()
	return slices.Contains(knows, before) && slices.Contains(knew, after)
}

// compareEngines finds the engines whose keys mean something else than the file says. A
// change of the scope or the fingerprint is safe if the former program knows the new
// meaning, and the present program knows the former meaning. A change of the namespace
// is never safe.
func (f *File) compareEngines(now []Engine) (all []Change) {
	for _, is := range now {
		was, known := f.Engines[is.Package][is.Name]
		if !known {
			continue
		}
		add := func(d Danger, what string, names []string) {
			if len(names) > 0 {
				all = append(all, Change{Danger: d, Handler: is.Package + "." + is.Name, Pos: is.Pos, Message: fmt.Sprintf("%s of the engine has changed: %s", what, list(names))})
			}
		}
		scope := slices.DeleteFunc(changes(was, is.Meaning), ofFingerprint)
		if knowEachOther(was, is.Meaning) {
			scope = slices.DeleteFunc(scope, ofCaller)
		}
		fingerprint := changes(was.fingerprint(), is.Meaning.fingerprint())
		add(New, "the scope", scope)
		renamed := !slices.Contains(fingerprint, "Fingerprint.Func") || slices.Contains(fingerprint, "Fingerprint.FuncName") // false if Fingerprint.Func has changed, but FuncName has not, so that one name stands for two functions
		knows := func(m Meaning) bool { return m[knownSchemes]+m[formerPreset] != "" }
		if !knows(was) || !knows(is.Meaning) || !renamed {
			add(Incomparable, "the fingerprint", fingerprint)
		}
	}
	return all
}

// changes returns the names of the options that differ. It leaves out Fingerprint.Known,
// which only adds known fingerprints.
func changes(was, is Meaning) (names []string) {
	both := make(Meaning)
	maps.Copy(both, was)
	maps.Copy(both, is)
	for name := range both {
		if was[name] != is[name] && name != knownSchemes {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
