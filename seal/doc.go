// Package seal encrypts the contents of records at rest: requests, results of phases,
// arguments of jobs and answers. It is opt-in: pass a [Sealer] to dynamo.New.
//
//	sealer := seal.New(provider)
//	store, err := dynamo.New(client, table, func(o *dynamo.Options) { o.Seal = sealer })
//
// A [Provider] makes data keys and opens wrapped ones: module kms has a provider on
// AWS KMS, and [NewStatic] wraps them with keys of your own. A record stores its
// wrapped data key. A Sealer keeps data keys in memory for a time, so that nearly no
// request calls the provider.
//
// Contents are encrypted with AES-256-GCM under a random nonce, and bound to their
// place: a part of a record can't be opened in another record, operation or part.
//
// Not encrypted are the data by which records are found and conditions decide; nor
// does encryption show that a whole record was replaced by its own earlier version.
// docs/operate/encryption.md lists both.
package seal
