package stack_test

import (
	"os"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestMain(m *testing.M) {
	// A stack and its programs take Region and credentials of the environment, and these name one database.
	for name, value := range map[string]string{
		"DYNAMOTEST_SEPARATE": "0", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "dynamotest", "AWS_SECRET_ACCESS_KEY": "dynamotest",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(dynamotest.Main(m))
}
