// Package crash has the crash matrix: processes of real functions meet every
// fault at every call that they make.
//
// A row of the matrix is a crash point: a call of a process to DynamoDB, to a queue, to
// a function or to a provider. A column is a fault: the process is killed before the
// call or after it, stopped past its lease, the answer is lost, the packet comes late, and
// so on. Each cell is played with a request of its own. The request's client retries with
// the same key until it is answered, and worker and consumer do their work. Then the test
// counts the effects on the users' table and at the provider, and compares the answers.
//
// The package has tests only; cmd/function is their program. proof/crash-matrix.md is
// written by a run: make crash-matrix.
package crash
