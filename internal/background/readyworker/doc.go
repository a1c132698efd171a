// Package readyworker holds the program cmd/samekey-worker, which runs package worker with settings
// from environment variables. The program of module kms can also open sealed args.
package readyworker
