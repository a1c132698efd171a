// Package rides is Rocket Rides: users in a hurry book a jetpack pilot for $20. One
// request writes to two tables, takes money through an external API, and sends a
// mail. The process may die at any point, and clients may send the request again.
//
// Read create.go first, which holds the whole request. The other files:
//
//	function.go    the routes, and refusals before a key is claimed
//	input.go       the request's input; raise.go lets a client ask for a failure
//	user.go        the users; the Lambda authorizer
//	ride.go        the stored items
//	payments.go    the payment provider's client
//	receipt.go     the job that the request leaves behind; the mail service's client
//	config.go      settings from the environment; the metrics are those of lambda/metrics
//	cmd/           a main for each function of template.yaml, without logic
//	world/         stands in for the external systems: payments and mails
//	demo/          injects failures on this machine: make demo
package rides
