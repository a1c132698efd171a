// Package stack tests make local: its tests run the whole of Rocket Rides as a
// developer does, and use it from outside, over HTTP and by signals.
package stack
