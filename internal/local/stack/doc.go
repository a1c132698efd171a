// Package stack runs the functions of a SAM template on one machine, without Docker: it
// starts the real bootstraps, serves their APIs like API Gateway, and feeds them from the
// streams of DynamoDB Local, from local queues and by schedules.
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
// serves their APIs, and eventsource feeds them.
package stack
