// Package deploy holds the stack of a table and its worker: a CloudFormation template that users
// nest in their templates. docs/operate/deploying.md explains the stack.
package deploy

import (
	_ "embed"
	"strings"
)

// File is the file name of the stack's template: users' templates nest the stack by this name.
const File = "samekey.yaml"

//go:embed samekey.yaml
var nested string

// Nested returns the template that SAM and `aws cloudformation package` deploy. The worker's
// program must be in the folder dist/samekey-worker beside the template.
func Nested() string { return nested }

// Standalone returns the template for tools other than SAM and `aws cloudformation package`. The
// worker's program must be a zip file in a bucket; the parameters CodeBucket and CodeKey name the
// bucket and the file.
func Standalone() string { return standalone.Replace(nested) }

// standalone replaces the texts that differ between the two templates. Each old text occurs once
// in the nested template.
var standalone = strings.NewReplacer(replacements...)

var replacements = []string{
	"      Code: dist/samekey-worker/\n",
	`      Code:
        S3Bucket: !Ref CodeBucket
        S3Key: !Ref CodeKey
`,
	"      SkipBuild: true # `sam build` has nothing to build: the folder holds the program\n" +
		"      GoPackage: github.com/samekey/samekey/cmd/samekey-worker # for `samekey local`\n" +
		"      cfn-lint:\n        config:\n" +
		"          ignore_checks: [W3002] # `sam deploy` and `aws cloudformation package` upload the folder\n",
	"      GoPackage: github.com/samekey/samekey/cmd/samekey-worker\n",
	"# Written by `samekey stack`;", "# Written by `samekey stack --standalone`;",
	"\nParameters:\n",
	`
Parameters:
  CodeBucket:
    Description: The bucket with the worker's zip file, which holds the program as bootstrap.
    Type: String
  CodeKey:
    Description: The zip file's key. Another version of the worker needs another key.
    Type: String
`,
}
