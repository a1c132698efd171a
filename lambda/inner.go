package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/internal/base/rawjson"
	"github.com/samekey/samekey/internal/trace"
)

// Inner returns the content that the producer of a message sent. If m has an envelope
// of SNS (without raw message delivery) or EventBridge, Inner returns the
// notification's message or the event's detail. Otherwise Inner returns the body of m.
// If m has no attribute [KeyAttribute], [SQS] looks for the key inside the envelope,
// and compares messages without the envelope's ids, times and signatures. But the
// handler gets m with the envelope, and can call Inner. Inner returns an error if the
// body of m looks like an envelope but can't be read.
func Inner(m events.SQSMessage) (string, error) {
	in, ok, err := openBody(m.Body)
	if err != nil {
		return "", fmt.Errorf("lambda: %w", err)
	}
	if !ok {
		return m.Body, nil
	}
	return in.body, nil
}

// inner is the content of a message without the envelopes of services. Envelopes hold data that
// differs between deliveries of the same job: ids, times and signatures.
type inner struct {
	key  string     // the text of KeyAttribute, or else the job's id, or else the id of the innermost envelope, or else the message id
	body string     // a notification's message, an event's detail, a job, or the body of a message without an envelope
	said url.Values // the envelopes' data about the work: attributes, subject, topic, type, source, resources, unknown members

	trace trace.Context // the producer's; the engine doesn't compare it
}

// inner.traces stores an attribute if it belongs to the trace context.
func (in *inner) traces(name, value string) {
	switch name {
	case trace.ParentHeader:
		in.trace.Parent = value
	case trace.StateHeader:
		in.trace.State = value
	}
}

// content returns what a message's envelopes hold. If keyed is true, the producer has
// named the work in [KeyAttribute], and content opens no envelope. If content opens no
// envelope, it returns the body, with id as the key. If an envelope can't be read,
// content returns body and id too, together with an error.
func content(keyed bool, id, body string) (in inner, opened bool, err error) {
	if !keyed {
		if in, opened, err = openBody(body); opened {
			return in, true, nil
		}
	}
	return inner{key: id, body: body, said: make(url.Values)}, false, err
}

// attributeKey returns the text of [KeyAttribute]; keyed is false if there is no such attribute. An
// attribute without text is an error: otherwise the key would be the message id, and the job would
// be done once for each message. Two attributes are an error too, because either may be the job's
// key.
func attributeKey(attributes iter.Seq2[string, string]) (key string, keyed bool, err error) {
	n := 0
	for name, value := range attributes {
		if strings.EqualFold(name, KeyAttribute) {
			n, key = n+1, value
		}
	}
	switch {
	case n > 1:
		err = fmt.Errorf("the message has %d attributes named %s (case-insensitively): send one", n, KeyAttribute)
	case n == 1 && key == "":
		err = fmt.Errorf("the message attribute %s has no text", KeyAttribute)
	}
	return key, n > 0, err
}

// openBody opens the envelopes of a message. ok is false if there is no envelope.
func openBody(body string) (in inner, ok bool, err error) {
	if !marked(body) {
		return inner{}, false, nil // the usual case: no envelope, so the body is not decoded
	}
	in, ok, err = openObject([]byte(body))
	if err != nil {
		return inner{}, false, fmt.Errorf("the message looks like an envelope of SNS or EventBridge and can't be read (%w); "+
			"turn on raw message delivery, pass events on whole, or find the key by Batch.WithKey", err)
	}
	return in, ok, nil
}

// Each element of marks lists texts that a kind of envelope contains. An envelope is a
// JSON object with one of these sets of members:
//
//   - a Type of "Notification" and a TopicArn: SNS without raw message delivery;
//   - exactly one record in Records, from aws:sns: a message in the dead-letter queue
//     of a function that a topic invokes;
//   - a detail-type and a source, and an id or a detail: an event of EventBridge;
//   - exactly the members of [JobEvent], with or without a trace context: the detail of
//     an EventBridge event, if the rule passes on only the detail.
//
// The names of members are case-sensitive. An object that has an envelope's members but
// can't be read is an error. If the message id were the key instead, the job would be
// done once for each message that delivers the job.
var marks = [][]string{
	{`"Notification"`, `"TopicArn"`},
	{`"detail-type"`, `"source"`},
	{`"idempotency_key"`, `"operation"`, `"kind"`, `"args"`},
}

func marked(body string) bool {
	if !strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "{") {
		return false
	}
	for _, all := range marks {
		n := 0
		for _, mark := range all {
			if strings.Contains(body, mark) {
				n++
			}
		}
		if n == len(all) {
			return true
		}
	}
	return false
}

func openObject(body []byte) (inner, bool, error) {
	m, err := rawjson.Object(body)
	if err != nil {
		return inner{}, false, err
	}
	_, topic := m["TopicArn"]
	_, detailType := m["detail-type"]
	_, source := m["source"]
	switch {
	case topic && string(m["Type"]) == `"Notification"`:
		return openNotification(m)
	case detailType && source && (m["id"] != nil || m["detail"] != nil):
		return openEvent(m)
	case isJob(m):
		key, err := jobKey(m)
		return inner{key: key, body: string(body), said: url.Values{}, trace: jobTrace(body)}, true, err
	}
	return openRecords(m)
}

func openNotification(m map[string]json.RawMessage) (inner, bool, error) {
	id, err1 := textIn(m, "MessageId")
	topic, err2 := textIn(m, "TopicArn")
	message, err3 := textIn(m, "Message")
	subject, err4 := optionalText(m, "Subject")
	attributes, err5 := attributesIn(m["MessageAttributes"])
	err := errors.Join(err1, err2, err3, err4, err5)
	if err == nil && (!strings.HasPrefix(topic, "arn:") || !strings.Contains(topic, ":sns:")) {
		err = errors.New("TopicArn isn't a topic's")
	}
	if err == nil && id == "" {
		err = errors.New("MessageId is empty")
	}
	if err != nil {
		return inner{}, false, err
	}
	in, err := snsContent(id, message, subject, attributes)
	if err != nil {
		return inner{}, false, err
	}
	in.said.Set("@topic", topic)
	others(in.said, m, notificationMembers)
	return in, true, nil
}

// snsContent returns the content of an SNS message, from an event of SNS or from an envelope. The
// content includes the message's attributes even if the message contains an EventBridge event or a
// drain's job.
func snsContent(id, message, subject string, attributes map[string]any) (inner, error) {
	key, keyed, keyErr := attributeKey(func(yield func(name, value string) bool) {
		for name, a := range attributes {
			dataType, value := snsAttribute(a)
			if strings.HasPrefix(dataType, "Binary") {
				value = ""
			}
			if !yield(name, value) {
				return
			}
		}
	})
	in, _, err := content(keyed, id, message)
	if keyed {
		in.key, err = key, keyErr
	}
	for name, a := range attributes {
		dataType, value := snsAttribute(a)
		in.traces(name, value)
		if identifies(name) {
			in.said.Set(name, dataType+":"+value)
		}
	}
	if subject != "" {
		in.said.Set("@subject", subject) // no attribute can have this name
	}
	return in, err
}

// snsAttribute returns a message attribute's type and value. Binary values are in
// base64.
func snsAttribute(a any) (dataType, value string) {
	m, _ := a.(map[string]any)
	dataType, _ = m["Type"].(string)
	switch v := m["Value"].(type) {
	case nil:
	case string:
		value = v
	default:
		value = fmt.Sprint(v)
	}
	return dataType, value
}

func openEvent(m map[string]json.RawMessage) (inner, bool, error) {
	id, err1 := textIn(m, "id")
	detailType, err2 := textIn(m, "detail-type")
	source, err3 := textIn(m, "source")
	var resources []string
	var err4 error
	if m["resources"] != nil {
		if err4 = json.Unmarshal(m["resources"], &resources); err4 != nil {
			err4 = errors.New("resources isn't a list of texts")
		}
	}
	err := errors.Join(err1, err2, err3, err4)
	if err == nil && id == "" {
		err = errors.New("id is empty")
	}
	if err != nil {
		return inner{}, false, err
	}
	key, err := detailKey(m["detail"], id)
	said := url.Values{"@type": {detailType}, "@source": {source}, "@resource": resources}
	others(said, m, eventMembers)
	return inner{key: key, body: string(m["detail"]), said: said, trace: jobTrace(m["detail"])}, true, err
}

// These lists name the members that SNS, EventBridge and Lambda write into envelopes.
var (
	notificationMembers = []string{
		"Message", "MessageAttributes", "MessageId", "Replayed", "SequenceNumber", "Signature", "SignatureVersion", "SigningCertURL", "SigningCertUrl",
		"Subject", "Timestamp", "TopicArn", "Type", "UnsubscribeURL", "UnsubscribeUrl",
	}
	eventMembers  = []string{"account", "detail", "detail-type", "id", "region", "replay-name", "resources", "source", "time", "version"}
	recordMembers = []string{"EventSource", "EventSubscriptionArn", "EventVersion", "Sns"}
)

// others adds unknown members of an envelope to said, since the producer may have added them to
// identify the work. A member is unknown if it isn't in the list known.
func others(said url.Values, m map[string]json.RawMessage, known []string) {
	for name, v := range m {
		if !slices.Contains(known, name) {
			said.Add("@member "+name, string(v)) // no attribute can have this name
		}
	}
}

// openRecords opens an envelope with Records: an event with which SNS has invoked a
// function.
func openRecords(event map[string]json.RawMessage) (inner, bool, error) {
	var records []json.RawMessage
	if err := json.Unmarshal(event["Records"], &records); err != nil || len(records) != 1 || !bytes.Contains(records[0], []byte(`"aws:sns"`)) {
		return inner{}, false, nil //nolint:nilerr // not an envelope
	}
	r, err := rawjson.Object(records[0])
	if string(r["EventSource"]) != `"aws:sns"` {
		return inner{}, false, err
	}
	m, err := rawjson.Object(r["Sns"])
	if err != nil {
		return inner{}, false, err
	}
	in, ok, err := openNotification(m)
	if ok {
		others(in.said, r, recordMembers)
		others(in.said, event, []string{"Records"})
	}
	return in, ok, err
}

func attributesIn(raw json.RawMessage) (map[string]any, error) {
	if !rawjson.Given(raw) {
		return nil, nil
	}
	m, err := rawjson.Object(raw)
	if err != nil {
		return nil, errors.New("MessageAttributes isn't an object")
	}
	all := make(map[string]any, len(m))
	for name, a := range m {
		var v struct{ Type, Value *string }
		if json.Unmarshal(a, &v) != nil || v.Type == nil || v.Value == nil {
			return nil, errors.New("an attribute isn't a Type and a Value")
		}
		all[name] = map[string]any{"Type": *v.Type, "Value": *v.Value}
	}
	return all, nil
}

func optionalText(m map[string]json.RawMessage, name string) (string, error) {
	if !rawjson.Given(m[name]) {
		return "", nil
	}
	return textIn(m, name)
}
