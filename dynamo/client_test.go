package dynamo_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
)

func TestNewClientReadsTheEnvironmentOnly(t *testing.T) {
	db := dynamotest.Start(t)
	set := func(t *testing.T, env map[string]string) {
		t.Helper()
		for _, name := range []string{
			"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
			"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL", "AWS_PROFILE",
		} {
			t.Setenv(name, env[name])
		}
	}
	whole := map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL_DYNAMODB": db.Endpoint,
	}
	t.Run("it works against the endpoint named there", func(t *testing.T) {
		set(t, whole)
		// A slow machine needs more than 2 s for a new table.
		client, err := dynamo.NewClient(func(o *dynamodb.Options) { o.HTTPClient = http.DefaultClient })
		if err != nil {
			t.Fatal(err)
		}
		if got := client.Options().Region; got != "eu-central-1" {
			t.Errorf("region %q", got)
		}
		name := "client-" + tabletest.NewKey()
		if err := dynamo.CreateTable(t.Context(), client, name); err != nil {
			t.Fatal(err)
		}
		if err := dynamo.CreateTable(t.Context(), client, name); err != nil {
			t.Errorf("a second time: %v", err)
		}
	})
	for _, missing := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Run("without "+missing+" it says so", func(t *testing.T) {
			env := maps.Clone(whole)
			delete(env, missing)
			set(t, env)
			if _, err := dynamo.NewClient(); err == nil || !strings.Contains(err.Error(), missing) {
				t.Errorf("got %v, want an error that names %s", err, missing)
			}
		})
	}
}

func TestNewRefusesWhatCantWork(t *testing.T) {
	t.Parallel()
	client := fakeAPI{}
	for name, tt := range map[string]struct {
		api   dynamo.API
		table string
		opt   func(*dynamo.Options)
		want  string
	}{
		"no client":           {nil, "table", nil, "api is nil"},
		"no table":            {client, "", nil, "table is empty"},
		"a table of one byte": {client, "t", nil, "is not the name"},
		"a URL":               {client, "https://example.com/table", nil, "is not the name"},
		"inline too large":    {client, "table", func(o *dynamo.Options) { o.Inline = 1 << 20 }, "Options.Inline"},
		"inline negative":     {client, "table", func(o *dynamo.Options) { o.Inline = -1 }, "Options.Inline"},
		"requests too short":  {client, "table", func(o *dynamo.Options) { o.KeepRequests = 24*time.Hour - 1 }, "Options.KeepRequests is 23h59m59.999999999s; at least 24h0m0s"},
		"requests negative":   {client, "table", func(o *dynamo.Options) { o.KeepRequests = -time.Second }, "Options.KeepRequests"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := tt.opt
			if opt == nil {
				opt = func(*dynamo.Options) {}
			}
			if _, err := dynamo.New(tt.api, tt.table, opt); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := dynamo.New(client, "table", func(o *dynamo.Options) { o.KeepRequests = 24 * time.Hour }); err != nil {
		t.Error(err)
	}
	for _, table := range []string{"idempotency", "a.b-c_D1", "arn:aws:dynamodb:eu-central-1:123456789012:table/idempotency"} {
		if _, err := dynamo.New(client, table); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
}

type fakeAPI struct{ dynamo.API }
