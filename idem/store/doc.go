// Package store defines the contract between package idem and a [Store], which keeps an
// engine's records. Package dynamo implements Store on DynamoDB. An application that
// uses an existing Store needs only the errors of this package, and for hooks the types
// [Call] and [Cost].
//
// A [Store] has three methods: Claim writes the first version of a [Record], Commit turns a
// version into the next one, Load reads the record. idemtest.TestStore checks an
// implementation against the contract.
package store
