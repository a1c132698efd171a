// Package records holds what the commands and the page share: it reads records, finds the
// record that a person means, tells the story of the record, and decides what an operator
// may do.
//
//   - [Scan] reads a table, [Search] finds a customer's records, and [Finder] finds a record
//     by any of its names.
//   - [Explain] tells the story of one operation, without a clock or a store. A story contains
//     only what the record shows. If the record is of an older version and lacks a fact, the
//     story says that the fact is unknown.
//   - [May] allows or refuses an operator's wish, and describes the change; [Plan.Run] makes
//     the change, if the record is unchanged.
package records
