// Package pages holds the pages in docs to the code: tables are made by the
// engine itself, programs are built, excerpts are those of tested files, links
// lead somewhere.
//
//	go test -C proof ./pages            # is everything as the pages say?
//	go test -C proof ./pages -update    # write the tables anew
package pages
