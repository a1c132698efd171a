// Package rides is Rocket Rides: users in a hurry book a jetpack pilot for $20.
// It is what the toolkit is for: one request that writes to two tables, takes
// money through somebody else's API, and sends a mail, and that may die at any
// point and be sent again.
//
// Read create.go first: it is the whole request. Then
//
//	function.go    the routes, and what is refused before a key is claimed
//	input.go       what a client sends; raise.go lets it ask for a failure
//	user.go        who is who; the Lambda authorizer
//	ride.go        what is stored
//	payments.go    the payment provider's client; mails.go the mail service's
//	receipt.go     the job that the request leaves behind
//	config.go      settings from the environment; metrics.go what is counted
//	cmd/           one main for each function of template.yaml; they only wire
//	world/         stands for everything outside: payments and mails
//	demo/          what can go wrong, played on one machine: make demo
//	killsweep/     the test that kills it wherever it can die
package rides
