// Package tail tells the changes of records from the events of a table's stream, without
// keys, bodies and results.
package tail

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// Change is a change of a record.
type Change struct {
	Time   time.Time `json:"time"` // whole seconds
	Record string    `json:"record"`
	Route  string    `json:"route,omitempty"`
	From   string    `json:"from"` // state; - = no record
	To     string    `json:"to"`   // state; - = no record, ? = not understood
	Phase  string    `json:"phase,omitempty"`
	Jobs   int       `json:"jobs,omitempty"`
	Ver    int64     `json:"ver,omitempty"`
	By     string    `json:"by,omitempty"` // ttl, if DynamoDB removed it
}

// String is the change in a line.
func (c Change) String() string {
	more := []string{}
	if c.Phase != "" {
		more = append(more, "phase "+c.Phase)
	}
	if c.Jobs > 0 {
		more = append(more, fmt.Sprintf("jobs %d", c.Jobs))
	}
	if c.By != "" {
		more = append(more, "by "+c.By)
	}
	route := c.Route
	if route == "" {
		route = "-"
	}
	return strings.TrimRight(fmt.Sprintf("%s  %s  %s  %s → %s  %s", c.Time.UTC().Format("15:04:05"), c.Record, route, c.From, c.To, strings.Join(more, ", ")), " ")
}

// event is Lambda's event of a stream.
type event struct {
	Records []struct {
		EventName    string
		UserIdentity *struct{ PrincipalID string }
		Dynamodb     struct {
			ApproximateCreationDateTime float64
			Keys, NewImage, OldImage    json.RawMessage
		}
	}
}

// Changes reads an event in Lambda's form. Items that are no records are left out.
func Changes(payload []byte) ([]Change, error) {
	var ev event
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, fmt.Errorf("not an event of a stream: %w", err)
	}
	var all []Change
	for _, r := range ev.Records {
		was, before := image(r.Dynamodb.OldImage)
		is, after := image(r.Dynamodb.NewImage)
		if was == nil && is == nil && before != unread && after != unread {
			continue
		}
		c := Change{Time: time.Unix(int64(r.Dynamodb.ApproximateCreationDateTime), 0).UTC(), From: before, To: after, Record: short(r.Dynamodb.Keys)}
		if r.UserIdentity != nil && r.UserIdentity.PrincipalID == "dynamodb.amazonaws.com" {
			c.By = "ttl"
		}
		rec := is
		if rec == nil {
			rec = was
		}
		if rec != nil {
			c.Route, c.Jobs, c.Ver = rec.Route, len(rec.Jobs), rec.Ver
			if n := len(rec.Phases); n > 0 {
				c.Phase = rec.Phases[n-1].Name
			}
		}
		all = append(all, c)
	}
	return all, nil
}

const (
	none   = "-"
	unread = "?"
)

// image reads an item in DynamoDB's JSON, and tells its state.
func image(raw json.RawMessage) (*store.Record, string) {
	if len(raw) == 0 {
		return nil, none
	}
	it, err := attributevalue.UnmarshalMapJSON(raw)
	if err != nil {
		return nil, unread
	}
	rec, err := dynamo.Decode(it)
	switch {
	case err != nil:
		return nil, unread
	case rec == nil:
		return nil, none
	}
	return rec, state(rec)
}

// state is a record's state, and what it waits for.
func state(r *store.Record) string {
	switch {
	case r.Blocked:
		return string(r.State) + " (blocked)"
	case r.State == store.Open && r.Lease.IsZero():
		return string(r.State) + " (released)"
	}
	return string(r.State)
}

// short is the short name of the record with these keys.
func short(keys json.RawMessage) string {
	it, _ := attributevalue.UnmarshalMapJSON(keys) // else there is no pk
	if pk, ok := it["pk"].(*types.AttributeValueMemberS); ok && redact.Record(pk.Value) != pk.Value {
		return redact.Record(pk.Value)
	}
	return "" // a key of another form may be anything
}
