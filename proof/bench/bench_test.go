package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/testkit/pagetest"
)

var update = flag.Bool("update", false, "write results.json and the tables of README.md anew")

func TestMain(m *testing.M) {
	_ = os.Unsetenv("AWS_REGION") // a record tells its Region, and here its bytes count; fails never
	os.Exit(dynamotest.Main(m))
}

// Results are results.json.
type Results struct {
	Prices Prices `json:"prices"`
	Paths  []Path `json:"paths"`
}

// Prices are a price list of one day: dollars for a million request units.
type Prices struct {
	Date   string  `json:"date"`
	Source string  `json:"source"`
	Region string  `json:"region"`
	Mode   string  `json:"mode"`
	Write  float64 `json:"write_units_per_million"`
	Read   float64 `json:"read_units_per_million"`
}

// of is the price of a million times these units, rounded to a hundredth of a cent.
func (p Prices) of(write, read float64) float64 {
	return math.Round((write*p.Write+read*p.Read)*1e4) / 1e4
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func write(t *testing.T, file string, v any) {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(raw, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPathsAreAsRecorded counts the calls, units and bytes of each path, which are the same in
// each run.
func TestPathsAreAsRecorded(t *testing.T) {
	var recorded Results
	read(t, "results.json", &recorded)
	got, err := measurePaths(t.Context(), dynamotest.Start(t), recorded.Prices)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recorded.Paths, got); diff != "" && !*update {
		t.Errorf("results.json (-recorded +now), go test -C proof ./bench -update writes it:\n%s", diff)
	}
	if *update {
		recorded.Paths = got
		write(t, "results.json", recorded)
	}
}

// TestPage has the tables of README.md made of the recorded results.
func TestPage(t *testing.T) {
	pagetest.Blocks(t, "../..", *update, map[string]func(*testing.T) string{"costs": costs, "breaks": breaks})
}

// costs has a table for each group of paths.
func costs(t *testing.T) string {
	t.Helper()
	var r Results
	read(t, "results.json", &r)
	var b strings.Builder
	group, tb := "", pagetest.Table{}
	flush := func() {
		if len(tb.Rows) > 0 {
			fmt.Fprintf(&b, "### %s\n\n%s\n", group, tb.String())
		}
	}
	for _, p := range r.Paths {
		if p.Group != group {
			flush()
			group, tb = p.Group, pagetest.Table{Head: []string{"path", "DynamoDB calls", "write units", "read units", "your units", "bytes at rest", "dollars a million"}}
		}
		tb.Add(p.Does, calls(p.Calls), number(p.Write), number(p.Read), number(p.Theirs), strconv.Itoa(p.Bytes), fmt.Sprintf("%.4g", p.Dollars))
	}
	flush()
	return strings.TrimSuffix(b.String(), "\n")
}

func calls(all map[string]int) string {
	var names []string
	for name, n := range all {
		if n > 1 {
			name += " × " + strconv.Itoa(n)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
