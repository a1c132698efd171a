package killsweep_test

import (
	"flag"
	"os"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

// atOnce is how many runs are under way at once: they wait for leases most of the
// time.
const atOnce = "20"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	os.Exit(dynamotest.MainSeparate(m))
}
