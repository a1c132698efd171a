// Package mix plays random programs. Each seed draws an engine's options, a script
// of phases, their sizes and their mistakes, faults of every call, clocks, clients, a
// completer and an operator, and plays them in virtual time on the real engine and the
// real store (docs/inside/proof.md). Package simulation has one application and plays the world
// around it; here the program itself is drawn.
package mix
