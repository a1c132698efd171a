package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// streamed is the stream record of an item that has just been inserted.
func streamed(it item, i int, at time.Time) events.DynamoDBEventRecord {
	image := streamimage.Of(it)
	return events.DynamoDBEventRecord{
		EventID: strconv.Itoa(i), EventName: "INSERT", EventSource: "aws:dynamodb", AWSRegion: "us-east-1",
		Change: events.DynamoDBStreamRecord{
			ApproximateCreationDateTime: events.SecondsEpochTime{Time: at},
			Keys:                        map[string]events.DynamoDBAttributeValue{"pk": image["pk"]},
			NewImage:                    image,
			SequenceNumber:              fmt.Sprintf("%021d", i+1),
			StreamViewType:              "NEW_AND_OLD_IMAGES",
		},
	}
}
