package main

import (
	"strings"
	"testing"
)

// Each line is in exactly one slice, and each slice is some commit's.
func TestSlicesAreTheTable(t *testing.T) {
	t.Parallel()
	const n = 4
	times := make(map[string]int)
	for i := range n {
		part := slice{i, n}.of(table())
		if len(part) < len(table())/n {
			t.Errorf("slice %d has %d of %d lines", i, len(part), len(table()))
		}
		for _, m := range part {
			times[m.rule+m.what]++
		}
	}
	for _, m := range table() {
		if got := times[m.rule+m.what]; got != 1 {
			t.Errorf("%s, %s is in %d slices", m.rule, m.what, got)
		}
	}
	seen := make(map[int]bool)
	for _, end := range "0123456789abcdef" {
		s, err := chosen(strings.Repeat("f", 14)+string(end)+strings.Repeat("0", 25), n)
		if err != nil {
			t.Fatal(err)
		}
		seen[s.at] = true
	}
	if len(seen) != n {
		t.Errorf("commits choose %v", seen)
	}
}

func TestParseSlice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]slice{"": {}, "1/4": {0, 4}, "4/4": {3, 4}, "1/1": {0, 1}} {
		if got, err := parseSlice(t.Context(), text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"0/4", "5/4", "4", "x/4", "1/0", "/", "1/x"} {
		if _, err := parseSlice(t.Context(), text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
