package ui_test

import (
	"os"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }
