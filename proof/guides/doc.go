// Package guides has the programs of the guides in docs/guides, as tests.
package guides
