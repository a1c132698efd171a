// Command supply has these commands for a release:
//
//	supply sbom -o DIR BINARY...    write a bill of materials (CycloneDX JSON) for each binary
//	supply sbom -o FILE.json BINARY
//	                                write the bill of one binary
//	supply licences ROOT            print the licence of each linked module
//	supply api [-strict] ROOT       print changes of the exported API since the last tag
//	supply proxy -o DIR ROOT VERSION FOLDER...
//	                                add modules of the last commit to a module proxy
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("sbom, licences, api or proxy")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	dir := flags.String("o", ".", "sbom, proxy: the folder to write to; sbom: or the file, for one binary")
	strict := flags.Bool("strict", false, "api: refuse incompatible changes before 1.0, too")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	root := flags.Arg(0)
	switch args[0] {
	case "sbom":
		return writeBills(out, *dir, flags.Args())
	case "licences":
		modules, err := linked(root)
		if err != nil {
			return err
		}
		table, err := licenceTable(modules)
		fmt.Fprint(out, table)
		return err
	case "api":
		return compareAPI(out, root, *strict)
	case "proxy":
		if flags.NArg() < 3 {
			return errors.New("proxy needs ROOT, VERSION and FOLDERs")
		}
		return publish(*dir, root, flags.Arg(1), flags.Args()[2:])
	}
	return fmt.Errorf("%q: sbom, licences, api or proxy", args[0])
}
