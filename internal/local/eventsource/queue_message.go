package eventsource

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

type message struct {
	id, handle string
	body       string
	trace      string // the message's attribute AWSTraceHeader
	json       []byte // the message's record in the event
}

// The fields are in the order of Lambda's events.
type messageJSON struct {
	MessageID              string                          `json:"messageId"`
	ReceiptHandle          string                          `json:"receiptHandle"`
	Body                   string                          `json:"body"`
	Attributes             map[string]string               `json:"attributes"`
	MessageAttributes      map[string]messageAttributeJSON `json:"messageAttributes"`
	MD5OfMessageAttributes string                          `json:"md5OfMessageAttributes,omitempty"`
	MD5OfBody              string                          `json:"md5OfBody"`
	EventSource            string                          `json:"eventSource"`
	EventSourceARN         string                          `json:"eventSourceARN"`
	AWSRegion              string                          `json:"awsRegion"`
}

type messageAttributeJSON struct {
	StringValue      *string  `json:"stringValue,omitempty"`
	BinaryValue      []byte   `json:"binaryValue,omitempty"`
	StringListValues []string `json:"stringListValues"`
	BinaryListValues [][]byte `json:"binaryListValues"`
	DataType         string   `json:"dataType"`
}

func newMessage(arn string, m types.Message) message {
	out := messageJSON{
		MessageID:              aws.ToString(m.MessageId),
		ReceiptHandle:          aws.ToString(m.ReceiptHandle),
		Body:                   aws.ToString(m.Body),
		Attributes:             map[string]string{},
		MessageAttributes:      map[string]messageAttributeJSON{},
		MD5OfMessageAttributes: aws.ToString(m.MD5OfMessageAttributes),
		MD5OfBody:              aws.ToString(m.MD5OfBody),
		EventSource:            "aws:sqs",
		EventSourceARN:         arn,
		AWSRegion:              regionOf(arn),
	}
	maps.Copy(out.Attributes, m.Attributes)
	for name, value := range m.MessageAttributes {
		out.MessageAttributes[name] = messageAttributeJSON{
			StringValue:      value.StringValue,
			BinaryValue:      value.BinaryValue,
			StringListValues: []string{},
			BinaryListValues: [][]byte{},
			DataType:         aws.ToString(value.DataType),
		}
	}
	return message{id: out.MessageID, handle: out.ReceiptHandle, body: out.Body, trace: out.Attributes["AWSTraceHeader"], json: marshal(out)}
}

// filters.wants reports whether the function gets the message. The function gets it if
// a filter matches, or if there are no filters.
func (f filters) wants(m message) bool {
	if len(f) == 0 {
		return true
	}
	v, _ := decodeJSON(m.json) // can't fail: newMessage made m.json
	record, _ := v.(map[string]any)
	body, err := decodeJSON([]byte(m.body))
	plain := err != nil
	if plain {
		body = m.body
	}
	return slices.ContainsFunc(f, func(p pattern) bool { return p.wants(record, body, plain) })
}

// pattern.wants reports whether the pattern matches a message. The parameter record is
// the message's record in the event. The parameter body is the message's body: a string
// if plain is true, otherwise the decoded JSON. A pattern whose "body" is an object can
// match only a JSON body. A pattern whose "body" is an array can match only plain text.
// A pattern without "body" ignores the body. The same holds in each alternative of
// "$or".
func (p pattern) wants(record map[string]any, body any, plain bool) bool {
	for key, field := range p.fields {
		value, present := record[key]
		if key == "body" {
			if plain == (field.below != nil) {
				return false
			}
			value, present = body, true
		}
		if !field.match(value, present) {
			return false
		}
	}
	for _, alternatives := range p.ors {
		if !slices.ContainsFunc(alternatives, func(p pattern) bool { return p.wants(record, body, plain) }) {
			return false
		}
	}
	return true
}
