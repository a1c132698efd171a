package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

// printJSON prints v, indented, with the signs <, > and & as they are.
func (e environment) printJSON(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printTable prints rows in columns below a head. Every cell becomes printable.
// Without rows, nothing is printed.
func (e environment) printTable(head []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, printable(cell))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// note prints a line for people beside the output.
func (e environment) note(format string, args ...any) { fmt.Fprintf(e.stderr, format+"\n", args...) }

// printable takes what would break a line or a terminal out of a text that may
// have come from anywhere: control characters, and those that turn the direction of
// a text or can't be seen.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c < ' ', c >= 0x7f && c < 0xa0, c == 0x61c, c >= 0x200b && c <= 0x200f, c >= 0x2028 && c <= 0x202e, c >= 0x2060 && c <= 0x206f, c == 0xfeff:
			return ' '
		}
		return c
	}, s)
}
