// Package guides has the programs of the guides in docs/start, as tests.
package guides
