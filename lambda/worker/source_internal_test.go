package worker

import "testing"

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
		if got, err := sourceOf([]byte(payload)); got != want || (err == nil) != (want != sourceUnknown) {
			t.Errorf("%s: got %v, %v, want %v", payload, got, err, want)
		}
	}
}
