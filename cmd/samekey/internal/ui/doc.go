// Package ui serves a page about the requests of a table. Only programs on this machine can
// reach the page.
//
// The page consists of static files that are embedded in the program. A [Source] reads the
// table, explains records and acts on them.
package ui
