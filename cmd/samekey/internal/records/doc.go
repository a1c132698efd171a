// Package records is what the commands and the page know about records: it reads them, finds
// the one that a person means, tells its story, and decides what an operator may do with it.
//
//   - [Scan] reads a table, [Search] a customer's records, and [Finder] finds a record by any
//     of its names.
//   - [Explain] tells the story of one operation. It reads no clock and no store. A story says
//     what a record shows and no more; what an older record doesn't have is unknown.
//   - [May] decides about a wish of an operator, and says in words what it does; [Plan.Run]
//     does it, if the record is still as it was.
package records
