package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/proof/prove/fault"
)

// Lambda ends a chain of requests in which a function is invoked more than chain times; received is how often the
// ticket has to come.
const (
	chain    = 16
	received = chain + 4
	held     = 240 // s, at most, for which its operation stays in flight
	asked    = 5   // s from one look at the queue to the next
	lag      = 60  // s until SQS counts a message
)

// probes come first: how tickets wait was decided on what they show.
func probes() []Claim {
	return []Claim{
		{
			Name: "probe.waiting-ticket", Text: "a ticket that waits by its visibility continues no chain that Lambda takes for a loop", Page: backgroundPage,
			Figure: "it came # times, and its operation was completed # s after the last",
			Cost:   Cost{Bookings: 2, Writes: 2 * held, Reads: 5 * held, Calls: held / asked}, Examine: examineWaitingTicket,
		},
		{
			Name: "probe.in-flight", Text: "a ticket that waits counts among the messages in flight, by which the worker knows that too many wait", Page: backgroundPage,
			Figure: "seen after # s, then at # of # looks", Cost: Cost{Calls: 1}, Examine: examineInFlight,
		},
		{
			Name: "probe.unhidden", Text: "a ticket whose message couldn't be hidden comes again", Page: backgroundPage, Figure: "again # s later",
			Cost:    Cost{Bookings: 2, Writes: 2*held + 10, Reads: 5 * held},
			Examine: func(ctx context.Context, p *Place) (string, error) { return p.interrupted(ctx, fault.Unhidden, 909) },
		},
		{
			Name: "probe.ended", Text: "a ticket comes again whose worker ends between its answer and the next event", Page: backgroundPage, Figure: "again # s later",
			Cost:    Cost{Bookings: 2, Writes: 2*held + 10, Reads: 5 * held},
			Examine: func(ctx context.Context, p *Place) (string, error) { return p.interrupted(ctx, fault.Answered, 914) },
		},
	}
}

// examineWaitingTicket has a ticket come again and again.
func examineWaitingTicket(ctx context.Context, p *Place) (string, error) {
	pk, err := p.abandon(ctx, newBooking("ticket", 908))
	if err != nil {
		return "", notSeen(err)
	}
	looks := 0
	most, quiet, err := p.watch(ctx, pk, func(n int) (bool, error) {
		if looks++; n > 0 && looks%asked == 0 {
			return false, p.askQueue(ctx)
		}
		return n >= received, nil
	})
	switch {
	case err != nil:
		return "", notSeen(err)
	case most == 0:
		return "", notSeen(errors.New("no ticket came"))
	case most < received && !quiet:
		return "", notSeen(fmt.Errorf("its message came %d times within %d s", most, held))
	case most < received:
		return "", fmt.Errorf("its message came %d times, and then no more", most)
	}
	last := time.Now()
	if err := p.completed(ctx, pk); err != nil {
		return "", fmt.Errorf("after its message came %d times: %w", most, err)
	}
	return fmt.Sprintf("it came %d times, and its operation was completed %.0f s after the last", most, time.Since(last).Seconds()), nil
}

// interrupted has a ticket come while the worker meets a fault, and then again.
func (p *Place) interrupted(ctx context.Context, kind fault.Kind, place int) (string, error) {
	f := fault.Fault{Kind: kind, Call: 1, Cell: "ticket"}
	undo, err := p.plant(ctx, fault.Waiting+"worker", f)
	if err != nil {
		return "", notSeen(err)
	}
	defer undo() // if it isn't met, it is nobody else's
	pk, err := p.abandon(ctx, newBooking(string(kind), place))
	if err != nil {
		return "", notSeen(err)
	}
	var since time.Time
	var at int
	var again bool
	_, quiet, err := p.watch(ctx, pk, func(n int) (bool, error) {
		if !since.IsZero() {
			at = max(at, 1)
			again = n > at
			return again, nil
		}
		item, err := p.item(ctx, fault.Happened+f.String())
		if item != nil {
			since = time.Now()
			at, err = p.came(ctx, pk)
		}
		return false, err
	})
	took := time.Since(since)
	switch {
	case err != nil:
		return "", notSeen(err)
	case since.IsZero():
		return "", notSeen(errors.New("the worker didn't meet " + f.String()))
	case !again && !quiet:
		return "", notSeen(fmt.Errorf("it didn't come again within %d s", held))
	case !again:
		return "", errors.New("it doesn't come again")
	}
	if err := p.completed(ctx, pk); err != nil {
		return "", err
	}
	return fmt.Sprintf("again %.0f s later", took.Seconds()), nil
}

// abandon has a booking's process killed, and returns its record's key.
func (p *Place) abandon(ctx context.Context, b booking) (pk string, _ error) {
	b.fault = fault.Fault{Kind: fault.After, Call: 2, Cell: "abandon"}
	a, err := p.book(ctx, b)
	if dark(err) {
		return "", err
	}
	pk, err = p.one(ctx, "begins_with(pk, :rides) AND st = :open", map[string]types.AttributeValue{
		":rides": &types.AttributeValueMemberS{Value: "v1#rides#"}, ":open": &types.AttributeValueMemberS{Value: "open"},
	})
	if err != nil {
		err = fmt.Errorf("the booking's answer was %d: %w", a.status, err)
	}
	return pk, err
}

// watch holds an operation, and looks how often its ticket came, until it is over. quiet: it comes no more.
func (p *Place) watch(ctx context.Context, pk string, over func(n int) (bool, error)) (most int, quiet bool, _ error) {
	last := time.Now()
	for range held {
		n, err := p.came(ctx, pk)
		if err != nil {
			return most, quiet, err
		}
		if n > most {
			most, last = n, time.Now()
		}
		if quiet = time.Since(last) > 2*p.patience(); quiet {
			return most, quiet, nil
		}
		if done, err := over(most); done || err != nil {
			return most, quiet, err
		}
		if err := errors.Join(p.hold(ctx, pk), sleep(ctx, time.Second)); err != nil {
			return most, quiet, err
		}
	}
	return most, quiet, nil
}

// completed waits until an operation has ended.
func (p *Place) completed(ctx context.Context, pk string) error {
	for end := time.Now().Add(p.patience()); time.Now().Before(end); {
		out, err := p.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.Records, Key: keyOf(pk), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return notSeen(plainError(err))
		}
		if text(out.Item["st"]) == "done" {
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return notSeen(err)
		}
	}
	return errors.New("its operation isn't completed")
}

// askQueue notes whether a ticket is in flight.
func (p *Place) askQueue(ctx context.Context) error {
	n, err := p.Hidden(ctx)
	if err != nil {
		return err
	}
	p.looks = append(p.looks, n > 0)
	return nil
}

// examineInFlight judges what was seen while the ticket waited, and came for moments. SQS may take a minute until it
// counts.
func examineInFlight(_ context.Context, p *Place) (string, error) {
	late := slices.Index(p.looks, true)
	switch {
	case late < 0 && len(p.looks) > lag/asked:
		return "", fmt.Errorf("at none of %d looks", len(p.looks))
	case late < 0:
		return "", notSeen(fmt.Errorf("no ticket was seen at %d looks", len(p.looks)))
	}
	counted := p.looks[late:]
	seen := 0
	for _, there := range counted {
		if there {
			seen++
		}
	}
	figure := fmt.Sprintf("seen after %d s, then at %d of %d looks", late*asked, seen, len(counted))
	if 2*seen < len(counted) {
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
			":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(p.now().UnixMilli(), 10)},
		},
	})
	if _, ended := errors.AsType[*types.ConditionalCheckFailedException](err); ended {
		return errors.New("the operation was completed while its lease was held")
	}
	return plainError(err)
}

// came is how often a message with a record's ticket was received; 0 if none was.
func (p *Place) came(ctx context.Context, pk string) (n int, _ error) {
	item, err := p.item(ctx, fault.Received+pk)
	n, _ = strconv.Atoi(text(item["times"])) // "" if there is no such item
	return n, err
}

// item is one of the provider's table; nil if it isn't there.
func (p *Place) item(ctx context.Context, id string) (map[string]types.AttributeValue, error) {
	out, err := p.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &p.Provider, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, plainError(err)
	}
	return out.Item, nil
}
