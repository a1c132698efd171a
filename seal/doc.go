// Package seal encrypts the contents of records at rest: requests, answers, results of phases, and
// arguments of jobs. It is opt-in: pass a [Sealer] to dynamo.New.
//
//	sealer := seal.New(provider)
//	store, err := dynamo.New(client, table, func(o *dynamo.Options) { o.Seal = sealer })
//
// A [Provider] makes data keys and opens wrapped data keys. Module kms has a provider on AWS KMS;
// [NewStatic] wraps data keys with your own keys. A record stores its wrapped data key. A Sealer
// keeps data keys in memory for a limited time, so that only few requests call the provider.
//
// Contents are encrypted with AES-256-GCM under a random nonce, and bound to their place: a sealed
// part of a record can't be opened in another record, in another operation, or as another part.
//
// Some data is not encrypted, such as data by which records are found, data that the conditions of
// writes compare, the names of phases, and the text of an operation's last error. Encryption can't
// detect that somebody replaced a whole record by an earlier version. docs/operate/encryption.md
// has the details.
package seal
