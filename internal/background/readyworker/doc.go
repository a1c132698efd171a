// Package readyworker is the program cmd/samekey-worker: package worker, set by
// environment variables. The program of module kms is the same with a sealer.
package readyworker
