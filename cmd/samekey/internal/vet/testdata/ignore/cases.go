// Package ignore has handlers with suppressed findings.
package ignore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/idem"
)

func good(ctx context.Context, queue *sqs.Client) error {
	//samekey:ignore effects the queue of traces may get a message twice
	queue.SendMessage(ctx, &sqs.SendMessageInput{})
	_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
	queue.SendMessage(ctx, &sqs.SendMessageInput{}) //samekey:ignore effects the same
	return err
}

func bad(ctx context.Context, queue *sqs.Client) error {
	// want +1 `ignore: no reason`
	//samekey:ignore effects
	queue.SendMessage(ctx, &sqs.SendMessageInput{}) // want `effects: `
	// want +1 `ignore: unknown rule "typo"`
	//samekey:ignore typo because
	_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
	// want +1 `effects: this comment suppresses nothing: remove it, or move it to the line of the finding`
	//samekey:ignore effects nothing is here
	return err
}

func otherRules(ctx context.Context, queue *sqs.Client) {
	idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
	// want +1 `keys: this comment suppresses nothing`
	//samekey:ignore keys of another rule
	queue.SendMessage(ctx, &sqs.SendMessageInput{}) // want `effects: `
	// want +1 `ignore: unknown rule "ignore"`
	//samekey:ignore ignore because
}
