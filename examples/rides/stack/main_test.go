package stack_test

import (
	"os"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("DYNAMOTEST_SEPARATE", "0") // a stack has one database; fails never
	os.Exit(dynamotest.Main(m))
}
