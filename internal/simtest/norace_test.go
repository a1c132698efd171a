//go:build !race

package simtest

const slower = 1
