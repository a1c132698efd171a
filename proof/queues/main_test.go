package queues_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// asFunction makes of this test binary the function of its queues.
const asFunction = "QUEUETEST_FUNCTION"

// atOnce is how many tests are under way at once: all of them, since they mostly wait for
// hidden messages.
const atOnce = "8"

func TestMain(m *testing.M) {
	switch os.Getenv(asFunction) {
	case "neighbours":
		neighbours()
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

// job is the body of a message: what its handler does.
type job struct {
	ID   string `json:"id"`
	Does string `json:"does,omitempty"` // "": its work; "hang": wait for the context's end; "ignore": not even that
}

// neighbours is a function without any settings.
func neighbours() {
	log := mustEffects()
	lambda.Start(lambda.WrapEach(mustEngine(), lambda.SQS, func(ctx context.Context, m events.SQSMessage) error {
		var j job
		if err := json.Unmarshal([]byte(m.Body), &j); err != nil {
			return err
		}
		log.add("run", j.ID)
		switch j.Does {
		case "hang":
			<-ctx.Done()
			return context.Cause(ctx)
		case "ignore":
			time.Sleep(time.Minute) //nolint:forbidigo // a handler that ignores its context
			log.add("woke", j.ID)
			return errors.New("woke up")
		}
		log.add("done", j.ID)
		return nil
	}))
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

// effects is a file to which processes append what they do, a line at a time.
type effects struct{ f *os.File }

func mustEffects() effects {
	f, err := os.OpenFile(os.Getenv("EFFECTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return effects{f}
}

func (e effects) add(did, id string) {
	if _, err := fmt.Fprintf(e.f, "%s %s\n", did, id); err != nil {
		panic(err)
	}
}

// readEffects returns the ids of each deed, in order.
func readEffects(t *testing.T, path string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	did := make(map[string][]string)
	for line := range strings.Lines(string(raw)) {
		deed, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		did[deed] = append(did[deed], id)
	}
	return did
}
