// Package ui serves a page about the requests of a table, on this machine only.
//
// The page is plain files that the program contains. Reading the table, explaining a
// record and acting on it are behind a [Source].
package ui
