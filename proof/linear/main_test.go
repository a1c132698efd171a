package linear

import (
	"log/slog"
	"os"
	"strconv"
	"testing"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem/store"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // much fails on purpose here
	os.Exit(dynamotest.Main(m))
}

// setting is a size from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: a number above zero", name, s)
	}
	return n
}

// onDynamoDB returns a store on a new table of DynamoDB Local.
func onDynamoDB(t *testing.T) store.Store {
	t.Helper()
	client := dynamotest.Start(t).Client(dynamo.Tune)
	if err := dynamo.CreateTable(t.Context(), client, "records"); err != nil {
		t.Fatal(err)
	}
	return openStore(t, client)
}

func openStore(t *testing.T, api dynamo.API) store.Store {
	t.Helper()
	s, err := dynamo.New(api, "records")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
