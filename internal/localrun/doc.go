// Package localrun runs the functions of a SAM template on one machine, without
// Docker: the real bootstraps, behind an HTTP front that behaves as API Gateway,
// fed by the streams of DynamoDB Local, by local queues and by schedules.
//
//	stack, err := localrun.Start(ctx, localrun.Options{Template: "template.yaml"})
//	if err != nil {
//		return err
//	}
//	defer stack.Close()
//	fmt.Println(stack.Ready())
//
// It is what samekey local does; docs/local.md tells users what is as in AWS and
// what isn't. The template is read by package sam, functions and the front are
// those of package lambdalocal, the event sources those of its package
// eventsource.
package localrun
