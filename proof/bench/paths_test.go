package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("AWS_REGION") // a record tells its Region, and here its bytes count; fails never
	os.Exit(dynamotest.Main(m))
}

const folder = "."

// The recorded calls, units, bytes and dollars are those of the code.
func TestPathsAreAsRecorded(t *testing.T) {
	t.Parallel()
	db := dynamotest.Start(t)
	prices, err := loadPrices(filepath.Join(folder, "prices.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := measurePaths(t.Context(), db, prices)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range got {
		t.Logf("%-24s %v w%v r%v t%v %dB $%v", p.ID, p.Calls, p.Write, p.Read, p.Theirs, p.Bytes, p.Dollars)
	}
	recorded, err := load(folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recorded.Paths, got); diff != "" {
		t.Errorf("proof/bench/results.json (-recorded +now), make bench-paths writes it:\n%s", diff)
	}
}

// So are those of answers in the record and beside it.
func TestInlineIsAsRecorded(t *testing.T) {
	t.Parallel()
	recorded, err := load(folder)
	if err != nil {
		t.Fatal(err)
	}
	got, err := measureInline(t.Context(), dynamotest.Start(t), recorded.Prices)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recorded.Inline, got); diff != "" {
		t.Errorf("proof/bench/results.json (-recorded +now), make bench-paths writes it:\n%s", diff)
	}
}
