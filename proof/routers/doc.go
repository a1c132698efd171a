// Package routers has the programs of docs/start/router.md, as tests: a keyed route under
// each router.
package routers
