// Package doctest holds the pages in docs to the code: tables are made by the
// engine itself, programs are built, excerpts are those of tested files, links
// lead somewhere.
//
//	go test ./internal/doctest            # is everything as the pages say?
//	go test ./internal/doctest -update    # write the tables anew
package doctest
