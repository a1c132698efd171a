// Package model is the protocol as a model: every write with its condition and its
// effect, every step of an attempt, and everything that may go wrong, for one key.
// An explorer visits every state that can be reached within the bounds of a
// configuration, and checks the promises in each. It is a specification that runs;
// no program links it.
//
// Read it beside docs/inside/architecture.md. Each file has one idea:
//
//   - record.go: the record, what really happened, attempts, packets;
//   - rules.go: the rules, each of which can be switched off;
//   - claim.go, takeover.go: how an attempt gets the record, and what it decides
//     about a record in its way;
//   - phases.go, foreign.go: commits; calls of other systems, and doubt about them;
//   - lookup.go: asking the provider for the outcome of a call in doubt;
//   - finish.go, release.go: how an attempt ends;
//   - completer.go, operator.go, drain.go: everybody else who writes;
//   - deploy.go: releases side by side, while scope or fingerprint changes;
//   - expiry.go, network.go: time, lost answers, late packets, conflicts;
//   - attempt.go: the order of an attempt's steps, and the steps' names;
//   - invariants.go, liveness.go: the promises;
//   - config.go, explore.go: what is explored, and how.
//
// "Code:" in a comment names the functions that do the same in the product;
// "Condition:" is a part of the condition expression on the table. Tests hold both
// to the code, and hold traces of the real engine to the model.
//
// docs/inside/model.md says what is assumed, and how to run it.
package model
