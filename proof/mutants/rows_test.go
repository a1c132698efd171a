package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/proof/internal/harness"
)

// A requirement whose tests no mutant fails is not known to be held: each has a mutant,
// or a reason why it has none.
func TestRequirementsAreBroken(t *testing.T) {
	t.Parallel()
	root, err := harness.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := requirements(root)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := unbroken(rows, table())
	if err != nil {
		t.Error(err)
	}
	for _, number := range numbers {
		if noMutant[number] == "" {
			t.Errorf("%s: no mutant fails a test of its row, and noMutant has no reason", number)
		}
	}
	for number := range noMutant {
		if !slices.Contains(numbers, number) {
			t.Errorf("%s: noMutant has it, and it has a mutant or is no row", number)
		}
	}
}

// A row has its mutant only if the mutant names it and runs a test that it names.
func TestUnbroken(t *testing.T) {
	t.Parallel()
	rows := []requirement{
		{"R1", []string{"idem.TestKey"}},
		{"R2", []string{"idem.TestKey/two words", "idem.TestOther"}},
		{"R3", []string{"dynamo.TestConformance/A5: a key"}},
		{"R4", []string{"lambda.TestKey"}},
		{"R5", []string{"proof/calls.TestKey/a.b"}},
		{"B1", []string{"idem.TestKey"}},
		{"T1", []string{"idem.TestLock"}},
	}
	for name, tc := range map[string]struct {
		m     mutant
		holds string
	}{
		"a test":                {mutant{row: "R1", in: "idem.Key", run: "^Test(Key|Lock)$"}, "R1"},
		"several rows":          {mutant{row: "R1 R2", in: "idem.Key", run: "^TestKey$"}, "R1 R2"},
		"its subtest":           {mutant{row: "R2", in: "idem.Key", run: "^TestKey$/^two_words$"}, "R2"},
		"another subtest":       {mutant{row: "R2", in: "idem.Key", run: "^TestKey$/^two_other$"}, ""},
		"another test":          {mutant{row: "R1", in: "idem.Key", run: "^TestOther$"}, ""},
		"another package":       {mutant{row: "R4", in: "idem.Key", run: "^TestKey$"}, ""},
		"tests elsewhere":       {mutant{row: "R4", in: "idem.Key", pkg: "lambda", run: "^TestKey$"}, "R4"},
		"the suite elsewhere":   {mutant{row: "R3", in: "idem.Key", pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$"}, "R3"},
		"a suite of its own":    {mutant{row: "R3", in: "idem.Key", pkg: "idem", run: "^TestMemoryStore$"}, ""},
		"a folder's subtest":    {mutant{row: "R5", in: "idem.Key", pkg: "proof/calls", run: "^TestKey$/^a.b$"}, "R5"},
		"a threat":              {mutant{row: "T1", in: "idem.Key", run: "^TestLock$"}, "T1"},
		"a row that isn't said": {mutant{in: "idem.Key", run: "^TestKey$"}, ""},
	} {
		numbers, err := unbroken(rows, []mutant{tc.m})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, number := range []string{"R1", "R2", "R3", "R4", "R5", "T1"} {
			if held := slices.Contains(strings.Fields(tc.holds), number); held == slices.Contains(numbers, number) {
				t.Errorf("%s: %s has a mutant: %t", name, number, !held)
			}
		}
	}
	if _, err := unbroken(rows, []mutant{{row: "R9", in: "idem.Key", run: "^TestKey$"}}); err == nil || !strings.Contains(err.Error(), "no row R9") {
		t.Errorf("a row that isn't there: %v", err)
	}
}
