// Package sam reads a SAM template far enough to run it on one machine: the
// functions with their environment and events, the APIs with their routes and
// authorizers, the tables and the queues.
//
//	t, err := sam.Load("template.yaml", func(o *sam.Options) {
//		o.Parameters = map[string]string{"Stage": "test"}
//	})
//	…
//	functions, err := t.Functions()
//
// The package resolves parameters, mappings, conditions, Globals and intrinsic
// functions (in their long and short forms). It resolves only the parts that it reads,
// so an alarm that imports a value from another stack causes no error. If a required
// value can't be resolved, the error names the resource, the property and its line.
//
// If the template gives a resource no name, the resource is called STACK-LOGICALID: the
// name that CloudFormation makes, without the random part. Some values are known
// only at run time, such as the ARN of a stream or the URL of a queue: set them with
// [Template.Set] before you call [Template.Functions].
//
// If an AWS::Serverless::Application or an AWS::CloudFormation::Stack names a template
// by its path, this nested template is read, too. Each id of a nested resource begins
// with the id of the nesting resource and a dot. Functions, event source mappings and
// schedules of plain CloudFormation are read like those of SAM.
//
// This package neither runs nor validates the template. To validate it, use cfn-lint.
package sam
