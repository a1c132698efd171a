package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
)

// Output may contain texts that anyone has written to the table, so hidden characters are replaced.
// Commands print with say, note, printTable and printJSON.

// environment.safe returns e with outputs that replace hidden characters.
func (e environment) safe() environment {
	e.screen = e.stderr
	e.stdout, e.stderr = &plain.Writer{W: e.stdout}, &plain.Writer{W: e.stderr}
	return e
}

// environment.say prints a line. A line break in an argument is printed as a space.
func (e environment) say(format string, args ...any) error {
	_, err := fmt.Fprintf(e.stdout, format+"\n", plain.Args(args)...)
	return err
}

// environment.note prints a line for people to standard error.
func (e environment) note(format string, args ...any) {
	fmt.Fprintf(e.stderr, format+"\n", plain.Args(args)...)
}

// printJSON prints v indented, without escapes for <, > and &.
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

// printTable prints rows in columns below a head. If there are no rows, printTable prints nothing.
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
