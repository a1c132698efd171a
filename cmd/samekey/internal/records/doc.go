// Package records holds what the commands and the page of samekey ui share: it reads
// records, finds the record that a person means, tells the story of the record, and
// decides what an operator may do.
//
//   - [Scan] reads a table, [Search] finds a customer's records, and [Finder] finds a
//     record by any of its names.
//   - [Explain] tells the story of one operation. It reads no clock and no store, so a
//     story contains only what the record and [StoryOptions] show. If a record of an
//     older version lacks a fact, the story says that the fact is unknown.
//   - [May] allows or refuses what an operator wishes, and describes the change.
//     [Plan.Run] makes the change if the record is unchanged.
package records
