package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const s3Kind = "an S3 event"

// S3 takes the notifications of a bucket. Don't change S3: change a copy, as [Batch]
// shows.
//
// Amazon S3 invokes the function asynchronously, and takes no report of which records
// failed. So if one record fails, the whole invocation fails. Lambda runs a failed
// invocation again, by default twice, and then hands the event to the function's
// failure destination. So configure a failure destination.
//
// The key of a notification is made of the bucket, object, version, event name and
// sequencer. Notifications of restores and lifecycle rules have no sequencer. Instead,
// their key has the event's time, and the id of the request that caused the event. So
// an object that is written again is new work, but a second delivery of a notification
// is the same work. The scope is the bucket and the function. Notifications with the
// same key must have the same event name, object, size and ETag.
var S3 = Batch[events.S3Event, events.S3EventRecord, struct{}]{
	Records: s3Records,
	ID:      func(r events.S3EventRecord) string { return r.S3.Object.Key },
	Key:     s3Key,
	Request: s3Request,
	Keeps:   keepsAsync,
	shared:  true,
}

func s3Records(ev events.S3Event) ([]events.S3EventRecord, error) {
	return ev.Records, checkOrigins(s3Kind, "aws:s3", len(ev.Records), func(i int) origin {
		r := &ev.Records[i]
		return origin{r.EventSource, r.S3.Object.Key, r.S3.Bucket.Name}
	})
}

func s3Key(r events.S3EventRecord) (string, error) {
	o := &r.S3.Object
	moment := "seq " + o.Sequencer
	if o.Sequencer == "" {
		request := r.ResponseElements["x-amz-request-id"]
		if request == "" && r.EventTime.IsZero() {
			return "", errors.New("nothing distinguishes this notification from the next notification of its object")
		}
		moment = "at " + r.EventTime.UTC().Format(time.RFC3339Nano) + " " + request
	}
	return digestKey(r.S3.Bucket.Name, o.Key, o.VersionID, r.EventName, moment), nil
}

func s3Request(ctx context.Context, r events.S3EventRecord) (idem.Request, error) {
	body, err := json.Marshal(struct {
		Event, Bucket, Object, ETag string
		Size                        int64
	}{r.EventName, r.S3.Bucket.Name, r.S3.Object.Key, r.S3.Object.ETag, r.S3.Object.Size})
	return idem.Request{
		Source: consumerScope(ctx, "arn:aws:s3:::"+r.S3.Bucket.Name),
		Route:  "S3 " + r.S3.Bucket.Name + " " + r.EventName,
		Body:   body,

		Asynchronous: true,
	}, err
}
