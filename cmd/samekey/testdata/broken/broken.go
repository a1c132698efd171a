// Package broken can't be compiled.
package broken

var _ int = "no number"
