// Package readyworker is the program cmd/samekey-worker: it runs package worker with settings from
// environment variables. The program of module kms can also open sealed args.
package readyworker
