// Package doctortest is an AWS account in memory, for tests of samekey doctor: clients
// of AWS's SDK send requests to the account and get AWS's answers. The account has a
// deployment of samekey.yaml, in which tests plant mistakes.
package doctortest
