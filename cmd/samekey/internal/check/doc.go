// Package check examines an HTTP API that takes idempotency keys, from outside: it sends
// requests and judges the answers. [Make] plans the requests of an examination, and says how
// many of them the API may carry out. [Plan.Run] sends them and reports which rules the API
// breaks. An examination applies either three contracts at once (this toolkit's default,
// Stripe's and the IETF draft's) or one commerce contract.
//
// A report never contains bodies, the headers that were sent, or the URL's query.
package check
