// Package doctortest is an AWS account in memory, for tests of samekey doctor: clients
// of AWS's SDK send their requests to it, and get answers in the form that AWS gives
// them. It has a deployment by samekey.yaml, in which tests plant mistakes.
package doctortest
