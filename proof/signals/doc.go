// Package signals tests metrics and logs on the real paths of engine, store and
// worker, across packages.
package signals
