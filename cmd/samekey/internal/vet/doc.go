// Package vet finds mistakes in handlers with phases, such as an effect that a retry
// repeats, or a call without a derived key. docs/use/vet.md explains each rule.
//
// Each rule is an [analysis.Analyzer], and has a file of its own. find.go finds the
// phases of a package, unit.go finds functions and their calls, graph.go orders the
// calls, and effect.go knows which calls have an effect. flow.go describes handlers for
// package lock.
//
// A rule looks at one package at a time. It follows calls of the package's own
// functions, methods and wrappers of phases, but no calls into other packages. It skips
// test files, and files that import the package testing.
package vet
