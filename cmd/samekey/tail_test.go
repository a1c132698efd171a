package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A table has a stream that can be followed, or the error says why not.
func TestStreamOfTheTable(t *testing.T) {
	t.Parallel()
	on, off, arn := &types.StreamSpecification{StreamEnabled: new(true)}, &types.StreamSpecification{StreamEnabled: new(false)}, new("arn:stream")
	const none = "the table records has no stream: samekey table create turns it on"
	for _, tt := range []struct {
		about     *types.TableDescription
		want, err string
	}{
		{nil, "", "the stream of table records is unknown: it takes the permission dynamodb:DescribeTable"},
		{&types.TableDescription{LatestStreamArn: arn}, "", none},
		{&types.TableDescription{LatestStreamArn: arn, StreamSpecification: off}, "", none},
		{&types.TableDescription{StreamSpecification: on}, "", none},
		{&types.TableDescription{LatestStreamArn: arn, StreamSpecification: on}, "arn:stream", ""},
	} {
		got, err := (&operator{table: "records", about: tt.about}).stream()
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%+v: %q, %v", tt.about, got, err)
		}
	}
}
