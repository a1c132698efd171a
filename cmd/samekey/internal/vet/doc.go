// Package vet finds mistakes in handlers with phases: effects that a retry repeats, results
// that a resumed run misses, calls without a derived key, and names and types with which an
// operation can't be resumed. docs/use/vet.md explains each rule.
//
// Each rule is an [analysis.Analyzer], and has a file of its own. find.go finds the
// phases of a package, unit.go finds functions and their calls, graph.go orders the
// calls, and effect.go knows which calls have an effect. flow.go describes handlers for
// package lock.
//
// The rules look at one package at a time: they follow calls within the package,
// including calls of methods and of wrappers of phases, but not calls into other
// packages. They skip test files, and files that import the package testing.
package vet
