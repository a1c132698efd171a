// Package stack runs the functions of a SAM template on one machine, without
// Docker: the real bootstraps, behind an HTTP front that behaves as API Gateway,
// fed by the streams of DynamoDB Local, by local queues and by schedules.
//
//	s, err := stack.Start(ctx, stack.Options{Template: "template.yaml"})
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	fmt.Println(s.Ready())
//
// samekey local calls it. docs/use/local.md lists the differences from AWS. Package
// sam reads the template, lambdarun runs the functions, apigateway serves their APIs,
// and eventsource feeds them.
package stack
