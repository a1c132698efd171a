// Package check examines an HTTP API that takes idempotency keys, from outside:
// it sends requests and judges the answers. [Make] tells beforehand which requests
// an examination sends and how many of them the API may carry out; [Run] sends
// them and reports which rules of three contracts the API breaks: this toolkit's
// default, Stripe's, and the IETF draft's.
//
// A report has no header that was sent, no body and no query of the URL.
package check
