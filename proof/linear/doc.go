// Package linear checks many concurrent clients' histories for linearizability, with
// faults, and plays one script of operations on several stores to compare what each says.
package linear
