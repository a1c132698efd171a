package prove

import "strings"

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

const policy = `{
  "Version": "2012-10-17",
  "Statement": [
    {"Sid": "Run", "Effect": "Allow", "Action": "cloudformation:*", "Resource": [
      "arn:aws:cloudformation:*:*:stack/samekey-prove-*",
      "arn:aws:cloudformation:*:aws:transform/Serverless-2016-10-31"]},
    {"Sid": "Own", "Effect": "Allow", "Action": ["dynamodb:*", "iam:*", "lambda:*", "logs:*", "s3:*", "scheduler:*", "sqs:*", "cloudwatch:*"], "Resource": [
      "arn:aws:dynamodb:*:*:table/samekey-prove-*",
      "arn:aws:iam::*:policy/samekey-prove-*",
      "arn:aws:iam::*:role/samekey-prove-*",
      "arn:aws:lambda:*:*:function:samekey-prove-*",
      "arn:aws:logs:*:*:log-group:samekey-prove-*",
      "arn:aws:s3:::samekey-prove-*",
      "arn:aws:scheduler:*:*:schedule/default/samekey-prove-*",
      "arn:aws:sqs:*:*:samekey-prove-*",
      "arn:aws:cloudwatch:*:*:alarm:samekey-prove-*"]},
    {"Sid": "Nameless", "Effect": "Allow", "Action": [
      "apigateway:DELETE", "apigateway:GET", "apigateway:PATCH", "apigateway:POST", "apigateway:PUT", "apigateway:TagResource",
      "cloudformation:DescribeStacks", "cloudwatch:DescribeAlarms", "lambda:CreateEventSourceMapping", "lambda:DeleteEventSourceMapping", "lambda:GetEventSourceMapping",
      "lambda:ListTags", "lambda:TagResource", "lambda:UpdateEventSourceMapping", "logs:DescribeLogGroups", "s3:ListAllMyBuckets",
      "sts:GetCallerIdentity"], "Resource": "*"}
  ]
}
`
