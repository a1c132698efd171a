package eventsource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// streamRecord is a stream's record in a batch.
type streamRecord struct {
	sequence string
	created  time.Time // whole seconds
	json     []byte    // the record's JSON in the event
}

// The fields are in the order of Lambda's events.
type streamRecordJSON struct {
	EventID        string            `json:"eventID"`
	EventName      string            `json:"eventName"`
	EventVersion   string            `json:"eventVersion"`
	EventSource    string            `json:"eventSource"`
	AWSRegion      string            `json:"awsRegion"`
	UserIdentity   *userIdentityJSON `json:"userIdentity,omitempty"`
	Change         *streamChangeJSON `json:"dynamodb,omitempty"`
	EventSourceARN string            `json:"eventSourceARN"`
}

// userIdentityJSON is a record's user identity. In Lambda's events its field names
// begin with small letters, in the API of DynamoDB Streams with capitals.
type userIdentityJSON struct {
	Type        string `json:"type"`
	PrincipalID string `json:"principalId"`
}

type streamChangeJSON struct {
	Created        json.Number    `json:"ApproximateCreationDateTime,omitempty"`
	Keys           map[string]any `json:"Keys,omitempty"`
	NewImage       map[string]any `json:"NewImage,omitempty"`
	OldImage       map[string]any `json:"OldImage,omitempty"`
	SequenceNumber string         `json:"SequenceNumber"`
	SizeBytes      int64          `json:"SizeBytes"`
	StreamViewType string         `json:"StreamViewType"`
}

func newStreamRecord(arn string, r types.Record) streamRecord {
	out := streamRecordJSON{
		EventID:        aws.ToString(r.EventID),
		EventName:      string(r.EventName),
		EventVersion:   aws.ToString(r.EventVersion),
		EventSource:    aws.ToString(r.EventSource),
		AWSRegion:      aws.ToString(r.AwsRegion),
		EventSourceARN: arn,
	}
	if id := r.UserIdentity; id != nil {
		out.UserIdentity = &userIdentityJSON{aws.ToString(id.Type), aws.ToString(id.PrincipalId)}
	}
	record := streamRecord{}
	if c := r.Dynamodb; c != nil {
		record.sequence = aws.ToString(c.SequenceNumber)
		record.created = aws.ToTime(c.ApproximateCreationDateTime)
		out.Change = &streamChangeJSON{
			Keys:           plainMap(c.Keys),
			NewImage:       plainMap(c.NewImage),
			OldImage:       plainMap(c.OldImage),
			SequenceNumber: record.sequence,
			SizeBytes:      aws.ToInt64(c.SizeBytes),
			StreamViewType: string(c.StreamViewType),
		}
		if c.ApproximateCreationDateTime != nil {
			// Lambda writes whole seconds as a float
			out.Change.Created = json.Number(fmt.Sprintf("%d.0", record.created.Unix()))
		}
	}
	record.json = marshal(out)
	return record
}

// plainMap returns an image in DynamoDB's JSON; nil if there is no image.
func plainMap(image map[string]types.AttributeValue) map[string]any {
	if image == nil {
		return nil
	}
	plain := make(map[string]any, len(image))
	for name, value := range image {
		plain[name] = plainValue(value)
	}
	return plain
}

// plainValue returns a value in the form {"S": "text"}. A []byte stays a []byte, since
// encoding/json writes it as base64.
func plainValue(value types.AttributeValue) map[string]any {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": v.Value}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": v.Value}
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": v.Value}
	case *types.AttributeValueMemberM:
		m := plainMap(v.Value)
		if m == nil {
			m = map[string]any{}
		}
		return map[string]any{"M": m}
	case *types.AttributeValueMemberL:
		list := make([]any, 0, len(v.Value))
		for _, element := range v.Value {
			list = append(list, plainValue(element))
		}
		return map[string]any{"L": list}
	default:
		return map[string]any{} // a kind that this SDK doesn't know
	}
}

// marshal is like json.Marshal, but doesn't escape characters for HTML, since Lambda
// doesn't either. The argument v contains only strings, numbers, booleans and
// bytes, so marshal can't fail.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// An event is eventHead, the records with commas between them, and eventTail.
const (
	eventHead = `{"Records":[`
	eventTail = `]}`
	// maxEventBytes limits the bytes of an event's records and commas, so that the
	// event fits into the payload of an invocation, 6 MB.
	maxEventBytes = lambdarun.MaxRequestBytes - len(eventHead) - len(eventTail)
)

func event(records [][]byte) []byte {
	return []byte(eventHead + string(bytes.Join(records, []byte(","))) + eventTail)
}

// later reports whether the sequence number a comes after b. It compares strings,
// because the numbers have up to forty digits.
func later(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}

func regionOf(arn string) string {
	if parts := strings.SplitN(arn, ":", 5); len(parts) == 5 {
		return parts[3]
	}
	return ""
}
