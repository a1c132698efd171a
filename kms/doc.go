// Package kms gives a sealer data keys from AWS KMS. Package kms is a separate module,
// so that programs without it don't link the client of KMS.
//
//	provider, err := kms.New(client, keyARN, func(o *kms.Options) { o.Context = map[string]string{"table": table} })
//	sealer := seal.New(provider)
//	store, err := dynamo.New(db, table, func(o *dynamo.Options) { o.Seal = sealer })
//
// A program that runs handlers needs kms:GenerateDataKey on the key, and kms:Decrypt to
// read the records of other processes. A program that only reads records, such as the
// worker, needs only kms:Decrypt.
package kms
