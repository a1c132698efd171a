// Package signaltest tests metrics and logs on the real paths of engine, store and
// worker, across packages.
package signaltest
