package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// examples has the examples in the commands' help. Each key of the map is a command's path.
var examples = map[string][]string{
	"samekey": {
		"samekey init                                   # create an application in this folder",
		"samekey list --table orders                    # list the operations that wait for people",
		"samekey get --key KEY --table orders           # explain one request by its key",
		"samekey help settle                            # show the help of a command",
	},
	"samekey init":    {"mkdir shop && cd shop && samekey init --module example.com/shop"},
	"samekey local":   {"samekey local --watch", "samekey local --template backend/template.yaml --api-port 8080"},
	"samekey stack":   {"samekey stack", "samekey stack --standalone table.yaml", "samekey stack --terraform samekey/main.tf"},
	"samekey check":   {`samekey check --body '{"amount":100}' http://localhost:3000/charges`},
	"samekey vet":     {"samekey vet ./...", "samekey vet --lock samekey.lock ./...", "samekey vet --lock samekey.lock --open"},
	"samekey get":     {"samekey get --key order-2041", "samekey get v1#orders#3NKH9BOIhZOrmVG1oEHJoo_gt3lzCnWGsW0UgNZPXZA --data"},
	"samekey list":    {"samekey list", "samekey list --reason unknown,stuck --each", "samekey list --stats"},
	"samekey retry":   {"samekey retry --key order-2041"},
	"samekey settle":  {`samekey settle --key order-2041 --result '{"id":"ch_123"}'`, "samekey settle --key order-2041 --not-made", `samekey settle --key order-2041 --answer 410 --body '{"error":"refunded"}'`},
	"samekey release": {"samekey release --key order-2041"},
	"samekey forget":  {"samekey forget --key order-2041 --dry-run"},
	"samekey erase":   {"samekey erase --caller jane@example.com --dry-run"},
	"samekey cancel":  {"samekey cancel --key order-2041", "samekey cancel EZWHY3QVLJBXWIPZ3ZYLBXGEVA.2.0 --dry-run"},
	"samekey redrive": {"samekey redrive --key order-2041", "samekey redrive --kind receipt --dry-run", "samekey redrive --removed --function orders-worker failed"},
	"samekey sweep":   {"samekey sweep --function orders-worker"},
	"samekey ui":      {"samekey ui", "samekey ui --addr 127.0.0.1:3004"},
	"samekey doctor":  {"samekey doctor --stack orders"},
}

// meant maps a wrong command name to the command that a person means by the name.
var meant = map[string]string{
	"answer": "settle", "decide": "settle", "delete": "forget", "dev": "local", "find": "get", "inspect": "get", "ls": "list", "new": "init", "page": "ui", "ps": "list",
	"remove": "forget", "run": "local", "search": "get", "show": "get", "start": "local", "status": "list", "unlock": "release", "version": "--version", "web": "ui",
}

// exemplify gives each command its examples.
func exemplify(cmd *cobra.Command) {
	lines := slices.Clone(examples[cmd.CommandPath()])
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	cmd.Example = strings.Join(lines, "\n")
	for _, sub := range cmd.Commands() {
		exemplify(sub)
	}
}

// didYouMean returns a suggestion for a word that isn't a subcommand of cmd.
func didYouMean(cmd *cobra.Command, word string) string {
	if known := meant[strings.ToLower(word)]; known != "" && !cmd.HasParent() {
		return " (did you mean samekey " + known + "?)"
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	if near := nearest(word, names); near != "" {
		return " (did you mean " + cmd.CommandPath() + " " + near + "?)"
	}
	return ""
}

// nearestFlag returns a suggestion if err is about an unknown flag.
func nearestFlag(cmd *cobra.Command, err error) string {
	typed, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest(typed, names); near != "" {
		return " (did you mean --" + near + "?)"
	}
	return ""
}

// nearest returns the first element of names that begins with word. If no element does,
// nearest returns the element that differs from word by the fewest letters; "" if all
// elements differ too much.
func nearest(word string, names []string) (name string) {
	word = strings.ToLower(word)
	best := len(word)/3 + 1
	for _, n := range names {
		d := distance(word, n)
		if len(word) > 1 && strings.HasPrefix(n, word) {
			d = 0
		}
		if d < best || d == best && name == "" {
			name, best = n, d
		}
	}
	return name
}

// distance returns how many letters must be inserted, removed or replaced to turn a
// into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := corner
			if a[i] != b[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}
