package emf_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/testkit/emf"
)

func good() string {
	return fmt.Sprintf(`{"_aws":{"Timestamp":%d,"CloudWatchMetrics":[{"Namespace":"N","Dimensions":[["App"],["App","Route"]],`+
		`"Metrics":[{"Name":"A","Unit":"Count"},{"Name":"B","Unit":"Milliseconds"}]}]},"App":"a","Route":"r","A":1,"B":[1.5,2],"p":"q"}`+"\n", time.Now().UnixMilli())
}

func TestParseReadsALine(t *testing.T) {
	t.Parallel()
	lines, err := emf.Parse([]byte(good() + good()))
	if err != nil || len(lines) != 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	l := lines[0]
	if l.Namespace != "N" || l.Sum("A") != 1 || l.Sum("B") != 3.5 || l.Units["B"] != "Milliseconds" || l.Dimensions[1]["Route"] != "r" || l.Properties["p"] != "q" ||
		len(l.Properties) != 1 || emf.Sum(lines, "A") != 2 {
		t.Errorf("read %+v", l)
	}
}

// Each rule of the specification is kept by an error.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("1,", 100) + "1"
	for name, change := range map[string][2]string{
		"no JSON":                  {`"A":1`, `"A":`},
		"a list":                   {"{", "["},
		"no end":                   {"\n", ""},
		"no time":                  {`"Timestamp"`, `"Time"`},
		"an old time":              {`"Timestamp":`, `"Timestamp":1,"Was":`},
		"no directive":             {`"CloudWatchMetrics"`, `"Metrics"`},
		"a member of no directive": {`"Namespace":"N"`, `"Namespace":"N","Name":"x"`},
		"no namespace":             {`"Namespace":"N"`, `"Namespace":""`},
		"no dimensions":            {`[["App"],["App","Route"]]`, `[]`},
		"a dimension's value":      {`"App":"a"`, `"App":1`},
		"an empty dimension":       {`"App":"a"`, `"App":" "`},
		"a dimension not in ASCII": {`"App":"a"`, `"App":"é"`},
		"a long dimension":         {`"App":"a"`, `"App":"` + strings.Repeat("a", 1025) + `"`},
		"a missing dimension":      {`"Route":"r",`, ``},
		"dimensions twice":         {`[["App"],`, `[["App"],["App"],`},
		"31 dimensions":            {`[["App"],`, `[[` + strings.Repeat(`"App",`, 30) + `"App"],`},
		"no metrics":               {`[{"Name":"A","Unit":"Count"},{"Name":"B","Unit":"Milliseconds"}]`, `[]`},
		"101 metrics":              {`"Metrics":[`, `"Metrics":[` + strings.Repeat(`{"Name":"A","Unit":"Count"},`, 100)},
		"a metric twice":           {`{"Name":"B"`, `{"Name":"A"`},
		"a metric and dimension":   {`{"Name":"B"`, `{"Name":"App"`},
		"no unit":                  {`"Unit":"Count"`, `"Unit":"Counts"`},
		"a resolution":             {`"Unit":"Count"`, `"Unit":"Count","StorageResolution":5`},
		"a missing value":          {`"A":1,`, ``},
		"text as a value":          {`"A":1`, `"A":"1"`},
		"text in a list":           {`[1.5,2]`, `[1.5,"2"]`},
		"no values":                {`[1.5,2]`, `[]`},
		"101 values":               {`[1.5,2]`, `[` + many + `]`},
		"a member twice":           {`"A":1`, `"A":1,"A":2`},
		"a long line":              {`"p":"q"`, `"p":"` + strings.Repeat("q", 256<<10) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := strings.Replace(good(), change[0], change[1], 1)
			if lines, err := emf.Parse([]byte(bad)); err == nil {
				t.Errorf("no error for %.300s: %+v", bad, lines)
			}
		})
	}
}
