// Package store is the contract between an engine of package idem and the medium
// that keeps its records. Package dynamo implements it on DynamoDB. An
// application that uses such a store doesn't need this package.
//
// A [Store] has three methods: Claim writes the first version of a [Record], Commit
// turns a version into the next one, Load reads the record. The suite in idemtest
// holds an implementation to the contract.
package store
