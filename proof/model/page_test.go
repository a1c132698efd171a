package model

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of proof/model/README.md anew")

// TestPage holds the tables of proof/model/README.md to the model.
func TestPage(t *testing.T) {
	t.Parallel()
	path := "README.md"
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(was)
	for _, block := range []struct{ name, text string }{
		{"promises", promises()}, {"configurations", configurations()}, {"rules", ruleTable()}, {"schedule", example(t)},
	} {
		begin := "<!-- " + block.name + " -->\n"
		before, rest, ok := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, "<!-- end -->")
		if !ok || !ended {
			t.Fatalf("the page has no place for %s", block.name)
		}
		page = before + begin + "\n" + block.text + "\n<!-- end -->" + after
	}
	switch {
	case page == string(was):
	case *update:
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("README.md is out of date (go test -C proof ./model -run TestPage -update)")
	}
}

// TestCommands holds the commands of docs/inside/model.md to the model: each explores a
// configuration that make test explores, or one without a rule.
func TestCommands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/inside/model.md")
	if err != nil {
		t.Fatal(err)
	}
	explores := map[string]bool{}
	for _, c := range configs() {
		explores["TestModel/"+strings.ReplaceAll(c.Name, " ", "_")] = c.States <= few
	}
	for _, rule := range rules {
		explores["TestEachRuleIsNeeded/"+rule.name] = rule.belt == ""
	}
	commands := regexp.MustCompile(`-run '(Test\w+/[^']+)'`).FindAllStringSubmatch(string(page), -1)
	if len(commands) < 2 {
		t.Errorf("%d commands found, want at least 2", len(commands))
	}
	for _, m := range commands {
		if !explores[m[1]] {
			t.Errorf("%s explores nothing", m[0])
		}
	}
}

func promises() string {
	var b strings.Builder
	for _, says := range invariants[1:] {
		fmt.Fprintf(&b, "- %s\n", says)
	}
	return b.String()
}

func configurations() string {
	var b strings.Builder
	b.WriteString("| configuration | attempts | phases | states |\n| --- | --- | --- | ---: |\n")
	roles := [...]string{Client: "client", ReadFirst: "client that reads first", Completer: "completer", Operator: "operator"}
	phases := [...]string{Atomic: "Atomic", Foreign: "Foreign", NotIdempotent: "NotIdempotent"}
	releases := [...]string{Former: "former release", First: "first release", Second: "second release", Latest: "latest release"}
	for _, c := range configs() {
		var who, what []string
		for i, r := range c.Who {
			name := roles[r]
			if c.Request[i] == 2 {
				name += ", with another request"
			}
			if c.Change != NoChange && r != Completer {
				name += " (" + releases[c.Program[i]] + ")"
			}
			who = append(who, name)
		}
		for _, p := range c.Phases {
			if p != NoPhase {
				name := phases[p]
				if c.Never {
					name += " that is never made again"
				}
				if c.LookUp {
					name += ", looked up"
				}
				what = append(what, name)
			}
		}
		if what == nil {
			what = []string{"none"}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Name, strings.Join(who, "; "), strings.Join(what, ", "), thousands(c.States))
	}
	fmt.Fprintf(&b, "| **together** | | | **%s** |\n", thousands(total()))
	return b.String()
}

func ruleTable() string {
	var b strings.Builder
	b.WriteString("| rule | it says that | without it, no longer true |\n| --- | --- | --- |\n")
	for _, r := range rules {
		broken := r.breaks.String()
		if r.belt != "" {
			broken = "(nothing: " + r.belt + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.name, r.says, broken)
	}
	return b.String()
}

func example(t *testing.T) string {
	t.Helper()
	return "```text\n" + story(explore(named(t, rules[TakeVer].in).without(TakeVer)).schedule) + "```\n"
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
