package queues_test

import (
	"flag"
	"os"
	"testing"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// asFunction makes of this test binary the function of its queues.
const asFunction = "QUEUETEST_FUNCTION"

// atOnce is how many tests are under way at once: all of them, since they mostly wait for
// hidden messages.
const atOnce = "8"

func TestMain(m *testing.M) {
	switch os.Getenv(asFunction) {
	case "orders":
		orders()
	default:
		flag.Parse()
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
		os.Exit(dynamotest.MainSeparate(m))
	}
}

func mustEngine(optFns ...func(*idem.Options)) *idem.Engine {
	client, err := dynamo.NewClient()
	if err != nil {
		panic(err)
	}
	store, err := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err != nil {
		panic(err)
	}
	return idem.New(store, append([]func(*idem.Options){callertest.Anybody}, optFns...)...)
}
