package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
)

// Whatever a command prints may come from a table, in which anyone may have written:
// say, note, table and printJSON print it, and the outputs themselves let nothing else
// pass than characters that can be seen.

// safe returns e with the last barrier before its outputs.
func (e environment) safe() environment {
	e.screen = e.stderr
	e.stdout, e.stderr = &plain.Writer{W: e.stdout}, &plain.Writer{W: e.stderr}
	return e
}

// say prints a line. No argument can end it.
func (e environment) say(format string, args ...any) error {
	_, err := fmt.Fprintf(e.stdout, format+"\n", plain.Args(args)...)
	return err
}

// note is say for people beside the output.
func (e environment) note(format string, args ...any) {
	fmt.Fprintf(e.stderr, format+"\n", plain.Args(args)...)
}

// printJSON prints v, indented, with the signs <, > and & as they are.
func (e environment) printJSON(v any) error { return e.jsonTo(v, "  ") }

func (e environment) jsonTo(v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := e.stdout.Write(plain.EscapedJSON(b.Bytes()))
	return err
}

// printTable prints rows in columns below a head. Without rows, nothing is printed.
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
			fmt.Fprint(w, plain.Line(cell))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
