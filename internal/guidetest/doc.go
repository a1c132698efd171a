// Package guidetest has the programs of the guides in docs/guides, as tests.
package guidetest
