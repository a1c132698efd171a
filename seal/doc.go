// Package seal encrypts the contents of records at rest: requests, results of phases,
// arguments of jobs and answers. It is opt-in: pass a [Sealer] to dynamo.New.
//
//	sealer := seal.New(provider)
//	store, err := dynamo.New(client, table, func(o *dynamo.Options) { o.Seal = sealer })
//
// A [Provider] makes data keys and opens wrapped data keys. Module kms has a provider on AWS KMS;
// [NewStatic] wraps data keys with your own keys. A record stores its wrapped data key. A Sealer
// keeps data keys in memory for a limited time, so that only few requests call the provider.
//
// Contents are encrypted with AES-256-GCM under a random nonce. They are bound to their place: a
// sealed part of a record can't be opened in another record, in another operation, or as another
// part.
//
// Data that finds records, and data in conditions, is not encrypted. Encryption can't show that
// somebody replaced a whole record by an earlier version of the same record.
// docs/operate/encryption.md has the details.
package seal
