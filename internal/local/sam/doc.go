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
// Parameters, mappings, conditions, Globals and the intrinsic functions are
// resolved, in their long and short forms, but only in what is read: an alarm
// that imports a value from another stack is in nobody's way. What has to be
// known and can't be is an error that names the resource, the property and its
// line.
//
// Names are what CloudFormation would make of them, without its random part:
// STACK-LOGICALID, unless the template sets one. What is known only once it runs
// (the ARN of a stream, the URL of a queue) is told by [Template.Set] before the
// functions are read.
//
// A template that is nested by its path, as an AWS::Serverless::Application or an
// AWS::CloudFormation::Stack, is read along: its resources have the nesting resource's
// id and a dot before theirs. Functions, event source mappings and schedules of plain
// CloudFormation are read as those of SAM.
//
// Nothing of the template is run or validated here; cfn-lint does that better.
package sam
