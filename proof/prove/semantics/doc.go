// Package semantics is the table of what Samekey's conditions assume of DynamoDB. Each
// assumption names the code that relies on it, and has an examination by the real API. For
// DynamoDB Local the table also has what it is known to do otherwise.
package semantics
