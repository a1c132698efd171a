// Package simulation simulates a whole application in virtual time. Its tests hold the
// engine, drain, completer, sweep, consumers and clients to the promises of the README,
// under every fault at once (docs/inside/proof.md).
package simulation
