// Package ui serves a page about the requests of a table. Only this machine can reach it.
//
// The page is plain files that the program contains. A [Source] reads the table,
// explains records and acts on them.
package ui
