package lock

import (
	"strings"
	"testing"
)

// A change of what a key means needs two releases. The lock file describes the former release.
func TestMeanings(t *testing.T) {
	t.Parallel()
	const knows = "[]idem.Fingerprint{{CanonicalJSON: true}}"
	acp := Meaning{"ACP": "true", "Fingerprint.Func": "true", "Fingerprint.FuncName": `"acp"`}
	fromACP := func(claims ...string) Meaning {
		m := Meaning{"Former": "true", "Former.Preset": "idem.ACP"}
		for name, value := range acp {
			m["Former."+name] = value
		}
		for _, name := range claims {
			m[name] = "true"
		}
		return m
	}
	for name, tt := range map[string]struct {
		was, is Meaning
		want    string // "": earlier requests survive the change
	}{
		"a scope":              {Meaning{}, Meaning{"Scope": "a"}, `the scope of the engine has changed: "Scope": a retry of an earlier request runs as a new operation`},
		"nobody is told apart": {Meaning{}, Meaning{"OneScope": "true"}, `"OneScope"`},
		"a commerce preset":    {Meaning{}, Meaning{"ACP": "true"}, `the scope of the engine has changed: "ACP"`},
		"another commerce preset": {
			Meaning{"ACP": "true", "Fingerprint.Func": "true", "Fingerprint.FuncName": `"acp"`},
			Meaning{"UCP": "true", "Fingerprint.Func": "true", "Fingerprint.FuncName": `"ucp"`},
			`the fingerprint of the engine has changed: "Fingerprint.FuncName": `,
		},
		"a preset, the first release":  {acp, fromACP("Former.Claims"), ""},
		"a preset, the second release": {fromACP("Former.Claims"), fromACP(), ""},
		"a preset, no first release":   {acp, fromACP(), `the fingerprint of the engine has changed`},
		"a preset, no second release":  {fromACP("Former.Claims"), Meaning{}, `the scope of the engine has changed`},
		"a scope under a preset":       {acp, Meaning{"ACP": "true", "Scope": "a", "Former": "true", "Former.Claims": "true", "Fingerprint.Func": "true", "Fingerprint.FuncName": `"acp"`}, ""},
		"a scope, without that preset": {acp, Meaning{"Scope": "a", "Former": "true", "Former.Claims": "true"}, `the scope of the engine has changed`},
		"a preset of the same function": {fromACP("Former.Claims"), func() Meaning {
			m := fromACP()
			m["Fingerprint.FuncName"], m["Fingerprint.Func"] = `"acp"`, "2"
			return m
		}(), `"Fingerprint.Func"`},
		"a fingerprint":              {Meaning{}, Meaning{"Fingerprint.CanonicalJSON": "true"}, `the fingerprint of the engine has changed: "Fingerprint.CanonicalJSON": retries of earlier requests are refused with 503`},
		"one is known":               {Meaning{}, Meaning{"Fingerprint.Known": knows}, ""},
		"known and used at once":     {Meaning{}, Meaning{"Fingerprint.CanonicalJSON": "true", "Fingerprint.Known": "[]idem.Fingerprint{{}}"}, "503"},
		"used after it was known":    {Meaning{"Fingerprint.Known": knows}, Meaning{"Fingerprint.CanonicalJSON": "true", "Fingerprint.Known": "[]idem.Fingerprint{{}}"}, ""},
		"used, the former forgotten": {Meaning{"Fingerprint.Known": knows}, Meaning{"Fingerprint.CanonicalJSON": "true"}, "503"},
		"a function of the old name": {
			Meaning{"Fingerprint.Known": knows, "Fingerprint.FuncName": "a", "Fingerprint.Func": "1"},
			Meaning{"Fingerprint.Known": knows, "Fingerprint.FuncName": "a", "Fingerprint.Func": "2"},
			`"Fingerprint.Func"`,
		},
		"no meaning in the file": {nil, Meaning{"Scope": "a"}, `"Scope"`},
		"the first release": {
			Meaning{"OneScope": "true"}, Meaning{"Scope": "a", "Former": "true", "Former.OneScope": "true", "Former.Claims": "true"}, "",
		},
		"the second release": {
			Meaning{"Scope": "a", "Former": "true", "Former.OneScope": "true", "Former.Claims": "true"},
			Meaning{"Scope": "a", "Former": "true", "Former.OneScope": "true"},
			"",
		},
		"back to the first release": {Meaning{"Scope": "a", "Former": "true"}, Meaning{"Scope": "a", "Former": "true", "Former.Claims": "true"}, ""},
		"no first release": {
			Meaning{"OneScope": "true"}, Meaning{"Scope": "a", "Former": "true", "Former.OneScope": "true"}, `"Former", "Former.OneScope", "OneScope", "Scope"`,
		},
		"no second release": {
			Meaning{"Scope": "a", "Former": "true", "Former.Scope": "b", "Former.Claims": "true"}, Meaning{"Scope": "a"}, `"Former", "Former.Claims", "Former.Scope"`,
		},
		"another former scope": {
			Meaning{"Scope": "a"}, Meaning{"Scope": "b", "Former": "true", "Former.Scope": "c", "Former.Claims": "true"}, `"Former.Scope"`,
		},
		"a former scope that isn't in sight": {Meaning{"Scope": "a"}, Meaning{"Scope": "b", "Former": "&former"}, `"Former", "Scope"`},
		"a namespace, and a first release": {
			Meaning{}, Meaning{"Namespace": "a", "Scope": "a", "Former": "true", "Former.Claims": "true"}, `has changed: "Namespace": `,
		},
	} {
		file := &File{Version: version, Engines: map[string]map[string]Meaning{"app": {"main": tt.was}}}
		var texts []string
		for _, c := range file.Compare(Program{Engines: []Engine{{Package: "app", Name: "main", Meaning: tt.is}}}, everything, nothing) {
			texts = append(texts, c.String())
		}
		got := strings.Join(texts, "\n")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	file := &File{Version: version}
	if changes := file.Compare(Program{Engines: []Engine{{Package: "app", Name: "main", Meaning: Meaning{"Scope": "a"}}}}, everything, nothing); len(changes) > 0 {
		t.Errorf("a new engine: %v", changes)
	}
}
