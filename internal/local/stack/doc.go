// Package stack runs the functions of a SAM template on one machine, without Docker. It
// starts the same bootstraps as Lambda, and serves the template's APIs like API Gateway.
// Schedules, local queues and the streams of DynamoDB Local invoke the functions.
//
//	s, err := stack.Start(ctx, stack.Options{Template: "template.yaml"})
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	fmt.Println(s.Ready())
//
// The command samekey local uses this package. docs/use/local.md lists the differences
// from AWS. Package sam reads the template, lambdarun runs the functions, apigateway
// serves the APIs, and eventsource sends events to the functions.
package stack
