package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/proof/prove/fault"
)

// world is all that bookings have left in the tables.
type world struct {
	rides, audit, provider []map[string]types.AttributeValue
}

func (p *Place) look(ctx context.Context) (w world, err error) {
	for table, into := range map[string]*[]map[string]types.AttributeValue{p.Rides: &w.rides, p.Audit: &w.audit, p.Provider: &w.provider} {
		pages := dynamodb.NewScanPaginator(p.DB, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return w, plainError(err)
			}
			*into = append(*into, page.Items...)
		}
	}
	return w, nil
}

func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// effects are those of one booking.
type effects struct{ rides, audit, charges, mails, paid int }

// of counts the effects of a booking, and returns its ride.
func (w world) of(place int) (e effects, ride string) {
	at := fmt.Sprint(latitude(place))
	for _, r := range w.rides {
		if text(r["origin_lat"]) != at {
			continue
		}
		e.rides++
		ride = text(r["id"])
		for _, x := range w.provider {
			switch id, about := text(x["id"]), text(x["about"]); {
			case strings.HasPrefix(id, "charge#") && about == "Ride "+ride:
				if e.charges++; text(r["charge_id"]) == text(x["made"]) {
					e.paid++
				}
			case strings.HasPrefix(id, "mail#") && about == ride:
				e.mails++
			}
		}
	}
	for _, a := range w.audit {
		if data, ok := a["data"].(*types.AttributeValueMemberM); ok && text(data.Value["origin_lat"]) == at {
			e.audit++
		}
	}
	return e, ride
}

// complete are the effects of a booking that was done once.
var complete = effects{1, 1, 1, 1, 1}

// wrong says how the effects differ from those of a booking that was done once: lost,
// doubled; "" if they don't.
func (e effects) wrong() string {
	var all []string
	for _, v := range []struct {
		what string
		n    int
	}{{"ride", e.rides}, {"audit record", e.audit}, {"charge", e.charges}, {"mail", e.mails}, {"ride with its charge", e.paid}} {
		switch {
		case v.n == 0:
			all = append(all, v.what+" lost")
		case v.n > 1:
			all = append(all, fmt.Sprintf("%s made %d times", v.what, v.n))
		}
	}
	return strings.Join(all, ", ")
}

// happened reports whether a fault was met.
func (w world) happened(f fault.Fault) (time.Time, bool) {
	for _, x := range w.provider {
		if text(x["id"]) == fault.Happened+f.String() {
			return timeOf(x), true
		}
	}
	return time.Time{}, false
}

// timeOf is when an item of the provider says that it happened.
func timeOf(x map[string]types.AttributeValue) time.Time {
	var ms int64
	_ = json.Unmarshal([]byte(text(x["at"])), &ms)
	return time.UnixMilli(ms)
}

// arrive waits until a look at the tables finds what is waited for.
func (p *Place) arrive(ctx context.Context, patience time.Duration, there func(world) bool) (w world, found bool, err error) {
	end := time.Now().Add(patience)
	for {
		if w, err = p.look(ctx); err != nil || there(w) {
			return w, err == nil, err
		}
		if time.Now().After(end) {
			return w, false, nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return w, false, err
		}
	}
}
