// Package calls holds tests that need both ends, handlers of package lambda
// and the store of package dynamo: what each kind of event costs in DynamoDB
// calls, and that a handler that runs again gets its event back.
package calls
