//go:build race

package simulation

// slower is how much less is simulated: the race detector looks on.
const slower = 5
