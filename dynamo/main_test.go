package dynamo_test

import (
	"log/slog"
	"os"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // much fails on purpose here
	_ = os.Unsetenv("AWS_REGION")                  // a record tells its Region; fails never
	os.Exit(dynamotest.MainSeparate(m))
}
