// Package queues holds tests that need a queue, a function in processes of its
// own and a table: what a queue's whole life does to each message.
package queues
