package eventsource_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/samekey/samekey/internal/local/eventsource"
)

func TestFailureDocumentsAreLambdas(t *testing.T) {
	for name, tt := range map[string]struct {
		answer answer
		age    time.Duration
	}{
		"failure_error":    {answer: failing("3")},
		"failure_reported": {answer: reporting("3", "4")},
		"failure_age":      {age: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, f, out := newFakeStream("shardId-00000001573689847184-864758bb"), &function{answer: tt.answer}, &failures{}
				for _, key := range []string{"1", "2", "3", "4"} {
					<-time.After(1500 * time.Millisecond)
					api.write(api.shards[0].id, func(r *types.Record) {
						r.Dynamodb.Keys = map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}}
					})
				}
				startStream(t, api, f, eventsource.Stream{
					FunctionARN: "arn:aws:lambda:eu-west-1:123456789012:function:drain", ReportBatchItemFailures: true,
					MaximumRetryAttempts: new(1), MaximumRecordAge: tt.age, OnFailure: out.take,
				})
				after(time.Minute)
				failure := out.got()[0]
				wantGolden(t, name+".json", steady(failure.Message()))
				var object struct{ Payload string }
				if err := json.Unmarshal(failure.Object(), &object); err != nil || object.Payload != string(failure.Payload) {
					t.Errorf("the object has the payload %s, %v; want %s", object.Payload, err, failure.Payload)
				}
				if tt.age == 0 && (len(recordNames(failure.Payload)) == 0 || string(failure.Payload) != string(f.payload(len(f.got())-1))) {
					t.Errorf("payload: got %s, want what the function got", failure.Payload)
				}
				if id := failure.RequestContext.RequestID; name == "failure_error" && id != "6d3d9a37-28b6-4f43-9e4f-5d0b0a0a1c11" || len(id) != 36 {
					t.Errorf("request id %s", id)
				}
			})
		})
	}
}
