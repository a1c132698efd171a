//go:build race

package simtest

// slower is how much less is simulated: the race detector looks on.
const slower = 5
