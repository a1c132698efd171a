// Package readyworker holds the program cmd/samekey-worker, which runs package worker with settings
// from environment variables. The program of the same name in module kms can also open sealed args.
package readyworker
