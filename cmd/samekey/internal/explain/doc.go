// Package explain tells the story of one operation from its record: the attempts, the
// phases, the calls with their derived keys, the jobs, the answer, the decisions of
// operators, and the events that come next. It is pure: it reads no clock and no
// store. A story says what a record shows and no more; anything that an older record
// doesn't have is unknown.
package explain
