// Package doctortest is an AWS account in memory, for tests of samekey doctor. The
// account answers clients of AWS's SDK as AWS does. The account has a deployment of
// samekey.yaml, in which tests plant mistakes.
package doctortest
