package worker

import (
	"strings"
	"testing"
)

func TestSourceOf(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]source{
		`{"Records":[{"eventSource":"aws:dynamodb"}]}`:                                      sourceStream,
		`{"Records":[{"eventSource":"aws:sqs"}]}`:                                           sourceQueue,
		`{"version":"0","detail-type":"Scheduled Event","source":"aws.scheduler"}`:          sourceSchedule,
		`{"version":"0","detail-type":"Scheduled Event","source":"aws.events","detail":{}}`: sourceSchedule,
		`{"source":"aws.scheduler","task":"count"}`:                                         sourceCount,
		`{"source":"aws.scheduler","task":"sweep"}`:                                         sourceSchedule,
		`{"source":"aws.scheduler","task":"tidy"}`:                                          sourceUnknown,
		`{"Records":[{"eventSource":"aws:kinesis"}]}`:                                       sourceUnknown,
		`{"Records":[{"EventSource":"aws:sns"}]}`:                                           sourceUnknown,
		`{"Records":[]}`: sourceUnknown,
		`{"source":"my.shop","detail-type":"OrderPlaced"}`: sourceUnknown,
		`{}`:   sourceUnknown,
		`null`: sourceUnknown,
		`[1]`:  sourceUnknown,
		``:     sourceUnknown,
	} {
		got, err := sourceOf([]byte(payload))
		if got != want || (err == nil) != (want != sourceUnknown) {
			t.Errorf("%s: got %v, %v, want %v", payload, got, err, want)
		}
		if no := payload == "" || payload == "[1]"; err != nil && strings.Contains(err.Error(), "not an event") != no {
			t.Errorf("%s: refused with %v", payload, err)
		}
	}
}
