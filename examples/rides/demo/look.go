package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/examples/rides"
)

// found holds the traces of a booking.
type found struct {
	rides, paid, audits, charges, receipts int

	ids []string // ids of the rides
}

// one reports whether the booking has happened exactly once.
func (f found) one() bool {
	return f.rides == 1 && f.paid == 1 && f.audits == 1 && f.charges == 1 && f.receipts == 1
}

func (f found) String() string {
	return fmt.Sprintf("%d ride, %d audit record, %d charge, %d receipt", f.rides, f.audits, f.charges, f.receipts)
}

type charge struct {
	ID, Key string
	Calls   int
}

func (s *story) charges(ctx context.Context) (all []charge, err error) {
	return all, call(ctx, "GET", s.stack.at.World+"/v1/charges", nil, &all)
}

// world sets the mode of the world; nil is the mode without failures.
func (s *story) world(ctx context.Context, mode map[string]any) {
	if mode == nil {
		mode = map[string]any{}
	}
	if err := call(ctx, "PUT", s.stack.at.World+"/v1/mode", mode, nil); err != nil {
		s.check("the world can be told", false, err.Error())
	}
}

// find collects the traces of a booking, in the tables and in the world.
func (s *story) find(ctx context.Context, b *booking) (f found, err error) {
	var all []rides.Ride
	if err := s.scan(ctx, s.stack.name+"-RidesTable", &all); err != nil {
		return f, err
	}
	var audits []struct {
		Ride string `dynamodbav:"resource_id"`
	}
	if err := s.scan(ctx, s.stack.name+"-AuditTable", &audits); err != nil {
		return f, err
	}
	charges, err := s.charges(ctx)
	if err != nil {
		return f, err
	}
	var mails []struct {
		Ride string `json:"ride_id"`
	}
	if err := call(ctx, "GET", s.stack.at.World+"/v1/mails", nil, &mails); err != nil {
		return f, err
	}
	for _, ride := range all {
		if ride.OriginLat != float64(b.lat) {
			continue
		}
		f.rides++
		f.ids = append(f.ids, ride.ID)
		if ride.ChargeID != "" {
			f.paid++
		}
		for _, c := range charges {
			if c.ID == ride.ChargeID {
				f.charges++
			}
		}
		for _, a := range audits {
			if a.Ride == ride.ID {
				f.audits++
			}
		}
		for _, m := range mails {
			if m.Ride == ride.ID {
				f.receipts++
			}
		}
	}
	return f, nil
}

func (s *story) scan(ctx context.Context, table string, out any) error {
	var items []map[string]types.AttributeValue
	pages := dynamodb.NewScanPaginator(s.direct, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		items = append(items, page.Items...)
	}
	return attributevalue.UnmarshalListOfMaps(items, out)
}

// record holds the attributes that show whether a record has work left.
type record struct {
	State string         `dynamodbav:"st"`
	Keep  string         `dynamodbav:"keep"`
	Jobs  map[string]any `dynamodbav:"jobs"`
}

// quiet waits until no operation is open and no job undelivered.
func (s *story) quiet(ctx context.Context) bool {
	return s.until(ctx, func() bool {
		var all []record
		if err := s.scan(ctx, s.stack.at.Table, &all); err != nil {
			return false
		}
		for _, r := range all {
			if r.State == "open" || r.Keep != "" || len(r.Jobs) > 0 {
				return false
			}
		}
		return true
	})
}

// until waits for a condition, for a limited time.
func (s *story) until(ctx context.Context, what func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !what() {
		if !sleep(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return true
}

// whole checks that a booking has completed exactly once, and that each retry gets
// the same answer.
func (s *story) whole(ctx context.Context, what string, b *booking) {
	var f found
	var err error
	// the receipt comes after the answer
	s.until(ctx, func() bool { f, err = s.find(ctx, b); return err != nil || f.receipts > 0 })
	s.check(what+": one ride, one audit record, one charge, one receipt", err == nil && f.one(), f.String())
	first := b.final
	again := s.send(ctx, b)
	var ride rides.Ride
	ok := again.err == nil && again.status == 201 && again.replayed() && json.Unmarshal(again.body, &ride) == nil &&
		len(f.ids) == 1 && ride.ID == f.ids[0] && (first == nil || again.same(first))
	s.check(what+": the 201 is replayed, byte for byte", ok, again.String())
	fmt.Printf("  %s; replayed: %d\n", f, again.status)
}
