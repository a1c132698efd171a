package prove

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/internal/cli/prove/fault"
)

// Lambda ends a chain of requests in which a function is invoked more than chain times; received is how often the
// ticket has to come.
const (
	chain    = 16
	received = chain + 4
	held     = 240 // s, at most, for which its operation stays in flight
	asked    = 5   // s from one look at the queue to the next
)

// probes come first: how tickets wait was decided on what they show.
func probes() []Claim {
	return []Claim{
		{
			Name: "probe.recursion", Text: "Lambda ends recursive loops of the worker", Page: "docs/operate/doctor.md",
			Cost: Cost{Calls: invocation20}, OnStandIn: "a stand-in has no recursion config", Examine: examineRecursion,
		},
		{
			Name: "probe.waiting-ticket", Text: "a ticket that waits by its visibility continues no chain that Lambda takes for a loop", Page: backgroundPage,
			Figure: "it came # times, and its operation was completed # s after the last",
			Cost:   Cost{Bookings: 2, Writes: 2 * held, Reads: waiting + 3*held, Calls: held / asked}, Examine: examineWaitingTicket,
		},
		{
			Name: "probe.in-flight", Text: "a ticket that waits counts among the messages in flight, by which the worker knows that too many wait", Page: backgroundPage,
			Figure: "at # of # looks", Cost: Cost{Calls: 1}, Examine: examineInFlight,
		},
	}
}

func examineRecursion(ctx context.Context, p *Place) (string, error) {
	out, err := p.Lambda.GetFunctionRecursionConfig(ctx, &lambda.GetFunctionRecursionConfigInput{FunctionName: &p.Worker})
	if err != nil {
		return "", notSeen(plainError(err))
	}
	if out.RecursiveLoop != lambdatypes.RecursiveLoopTerminate {
		return "", fmt.Errorf("the worker's RecursiveLoop is %s", out.RecursiveLoop)
	}
	return "", nil
}

// examineWaitingTicket has a ticket come again and again: its operation's process is killed, and its lease ends a little
// later each time.
func examineWaitingTicket(ctx context.Context, p *Place) (string, error) {
	b := newBooking("ticket", 908)
	b.fault = fault.Fault{Kind: fault.After, Call: 2, Cell: "ticket"}
	_, err := p.book(ctx, b)
	if dark(err) || ctx.Err() != nil {
		return "", notSeen(err)
	}
	pk, err := p.one(ctx, "begins_with(pk, :rides) AND st = :open", map[string]types.AttributeValue{
		":rides": &types.AttributeValueMemberS{Value: "v1#rides#"}, ":open": &types.AttributeValueMemberS{Value: "open"},
	})
	if err != nil {
		return "", notSeen(err)
	}
	most, last := 0, time.Now()
	for i := range held {
		n, err := p.came(ctx, pk)
		if n > 0 && i%asked == 0 {
			err = errors.Join(err, p.askQueue(ctx))
		}
		if n > most {
			most, last = n, time.Now()
		}
		if most >= received || err == nil && time.Since(last) > p.patience() {
			break
		}
		if err == nil {
			err = p.hold(ctx, pk)
		}
		if err = errors.Join(err, sleep(ctx, time.Second)); err != nil {
			return "", notSeen(err)
		}
	}
	w, done, err := p.arrive(ctx, p.patience(), func(w world) bool { e, _ := w.of(b.place); return e == complete })
	switch e, _ := w.of(b.place); {
	case err != nil:
		return "", notSeen(err)
	case !met(b.fault)(w):
		return "", notSeen(errors.New("the process was not killed"))
	case most == 0:
		return "", notSeen(errors.New("no ticket came"))
	case most < received && time.Since(last) <= p.patience():
		return "", notSeen(fmt.Errorf("its message came %d times within %d s", most, held))
	case most < received:
		return "", fmt.Errorf("its message came %d times, and then no more", most)
	case !done:
		return "", fmt.Errorf("after its message came %d times: %s", most, e.wrong())
	}
	return fmt.Sprintf("it came %d times, and its operation was completed %.0f s after the last", most, time.Since(last).Seconds()), nil
}

// askQueue notes whether a ticket is in flight.
func (p *Place) askQueue(ctx context.Context) error {
	n, err := p.Hidden(ctx)
	if err == nil {
		p.looks++
		p.inFlight += min(n, 1)
	}
	return err
}

// examineInFlight judges what was seen while the ticket waited, and came for moments.
func examineInFlight(_ context.Context, p *Place) (string, error) {
	figure := fmt.Sprintf("at %d of %d looks", p.inFlight, p.looks)
	switch {
	case p.looks == 0:
		return "", notSeen(errors.New("no ticket has waited"))
	case 2*p.inFlight < p.looks:
		return "", errors.New(figure)
	}
	return figure, nil
}

// hidden asks a queue how many of its messages are in flight.
func hidden(ctx context.Context, client *sqs.Client, url string) (int, error) {
	const notVisible = sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{notVisible}})
	if err != nil {
		return 0, plainError(err)
	}
	return strconv.Atoi(out.Attributes[string(notVisible)])
}

// hold has an operation's lease end now: its ticket waits for the grace from then on.
func (p *Place) hold(ctx context.Context, pk string) error {
	_, err := p.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &p.Records, Key: keyOf(pk), UpdateExpression: aws.String("SET lease_ms = :now"), ConditionExpression: aws.String("st = :open AND lease_ms > :zero"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":open": &types.AttributeValueMemberS{Value: "open"}, ":zero": &types.AttributeValueMemberN{Value: "0"},
			":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().UnixMilli(), 10)},
		},
	})
	if _, ended := errors.AsType[*types.ConditionalCheckFailedException](err); ended {
		return errors.New("the operation was completed while its lease was held")
	}
	if err != nil {
		return plainError(err)
	}
	return nil
}

// came is how often a message with a record's ticket was received; 0 if none was.
func (p *Place) came(ctx context.Context, pk string) (n int, _ error) {
	out, err := p.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &p.Provider, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fault.Received + pk}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, plainError(err)
	}
	n, _ = strconv.Atoi(text(out.Item["times"])) // "" if there is no such item
	return n, nil
}
