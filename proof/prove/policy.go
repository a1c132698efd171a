package main

import (
	_ "embed"
	"strings"
)

//go:embed policy.json
var policy string

// Policy is the IAM policy that a run needs in a Region, with the ARNs of the Region's
// partition. The program's own calls are in it by a test; those that CloudFormation makes with
// the caller's rights follow AWS's documents, and were never run.
func Policy(region string) string {
	return strings.ReplaceAll(policy, "arn:aws:", "arn:"+partition(region)+":")
}

// partition is the group of Regions that a Region is of; its ARNs begin with it.
func partition(region string) string {
	for _, p := range [][2]string{
		{"cn-", "aws-cn"}, {"us-gov-", "aws-us-gov"}, {"us-iso-", "aws-iso"}, {"us-isob-", "aws-iso-b"}, {"eu-isoe-", "aws-iso-e"}, {"us-isof-", "aws-iso-f"}, {"eusc-", "aws-eusc"},
	} {
		if strings.HasPrefix(region, p[0]) {
			return p[1]
		}
	}
	return "aws"
}
