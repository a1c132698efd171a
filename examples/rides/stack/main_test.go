package stack_test

import (
	"os"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestMain(m *testing.M) {
	// One database: that of a stack which takes Region and credentials of the environment.
	for name, value := range map[string]string{
		"DYNAMOTEST_SEPARATE": "0", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "dynamotest", "AWS_SECRET_ACCESS_KEY": "dynamotest", "AWS_SESSION_TOKEN": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(dynamotest.Main(m))
}
