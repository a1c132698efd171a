package rides_test

import (
	"context"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/examples/rides"
)

func TestBySource(t *testing.T) {
	t.Parallel()
	named := func(name string) awslambda.Handler {
		return awslambda.NewHandler(func(context.Context, any) (string, error) { return name, nil })
	}
	b := rides.BySource{"aws:dynamodb": named("stream"), "aws:sqs": named("queue")}
	for payload, want := range map[string]string{
		`{"Records":[{"eventSource":"aws:dynamodb"}]}`: `"stream"`,
		`{"Records":[{"eventSource":"aws:sqs"}]}`:      `"queue"`,
		`{"Records":[{"eventSource":"aws:s3"}]}`:       "",
		`{"Records":[]}`:                               "",
		`{}`:                                           "",
		`[]`:                                           "",
	} {
		got, err := b.Invoke(t.Context(), []byte(payload))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %s, %v; want %s", payload, got, err, want)
		}
	}
}
