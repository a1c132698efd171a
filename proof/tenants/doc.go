// Package tenants holds the tests that show that no caller gets another caller's
// answer. Random callers send random requests with equal keys through every kind of
// event, and each caller's answers must be the ones that the caller gets alone.
package tenants
